"""Models that answer without a network: passthrough, playback, scripts."""

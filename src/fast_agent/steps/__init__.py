"""Steps: what a run asks of the outside, each question with a place that is the same in every life.

Recordings, replays and durable runs are `Steps`; agents know none of them, only this seam.
"""

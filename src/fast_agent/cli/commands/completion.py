"""`fast-agent completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    bash: eval "$(fast-agent completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish:
    fast-agent completion fish > ~/.config/fish/completions/fast-agent.fish
    """
    from click.shell_completion import get_completion_class

    from fast_agent.cli.command_table import cli
    from fast_agent.cli.output import standard_output

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"there is no completion for `{shell}`")
    completion = made(cli, {}, "fast-agent", "_FAST_AGENT_COMPLETE")
    # Its own `source` starts bash to check its version; the script is the same for all versions.
    standard_output().write_facts(completion.source_template % completion.source_vars())

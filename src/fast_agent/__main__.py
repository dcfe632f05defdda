"""`python -m fast_agent` is `fast-agent`."""

from fast_agent.cli.main import main

if __name__ == "__main__":
    main()

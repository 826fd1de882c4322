"""Other libraries' ways in: what turns their programs into ours, or calls ours from theirs."""

"""From what was measured to what to do: findings, candidates, verdicts, the journal."""

/** Prints the findings of a check, one a line, and sets the exit code. */
export function report(findings: readonly string[]): void {
  for (const finding of findings) console.log(finding);
  if (findings.length > 0) process.exitCode = 1;
}

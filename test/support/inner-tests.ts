/** Returns what the spec reporter of an inner `node --test` says of its failed tests; without that, its last lines. */
export function failuresIn(stdout: string): string {
  const at = stdout.lastIndexOf("failing tests:");
  return at === -1 ? stdout.slice(-3000) : stdout.slice(at);
}

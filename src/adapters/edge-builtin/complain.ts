/** To the edge's log: stderr is appended to it. */
export function complain(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`);
}

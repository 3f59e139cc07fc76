/** Writes to the edge's log: stderr is appended to that file. */
export function writeLog(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`);
}

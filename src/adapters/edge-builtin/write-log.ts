/** To the edge's log: stderr is appended to it. */
export function writeLog(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`);
}

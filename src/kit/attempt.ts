/** Returns what `read` returns, or this instead if it throws: the file, the process or the value may be gone or damaged. */
export function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

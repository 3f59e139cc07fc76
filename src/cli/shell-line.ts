/** Joins words to a shell line. A single argument is the line itself; several are quoted, so that special characters stay part of their word. */
export function shellLine(words: readonly string[]): string {
  if (words.length === 1) return words[0] as string;
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

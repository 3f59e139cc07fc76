/** One argument is a line for the shell; several are words, whose blanks and marks stay theirs. */
export function shellLine(words: readonly string[]): string {
  if (words.length === 1) return words[0] as string;
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

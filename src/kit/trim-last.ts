/** Returns the text without this character at its end. Not a regular expression, which takes quadratic time where the text has many elsewhere. */
export function trimLast(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

// Control and format characters, line separators, spaces other than the usual one, and letters without a shape.
const unseen = /[\p{C}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\uffa0]/gu;

/** Spells out the characters that a reader can't see or that reorder a line, such as `\u{202e}`: a person decides by what is in sight. */
export function visible(text: string): string {
  return text.replaceAll(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

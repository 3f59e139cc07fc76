/** Returns the candidate most similar to a mistyped word, if one is similar enough to be meant. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: distance(word, candidate) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= Math.max(2, Math.floor(best.candidate.length / 3))
    ? best.candidate
    : undefined;
}

// Computes the Levenshtein distance, row by row.
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...one].entries()) {
    const row = [index + 1];
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = (above[column - 1] as number) + (letter === other[column - 1] ? 0 : 1);
      row.push(Math.min((above[column] as number) + 1, (row[column - 1] as number) + 1, replaced));
    }
    above = row;
  }
  return above[other.length] as number;
}

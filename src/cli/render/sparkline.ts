const blocks = "▁▂▃▄▅▆▇█";
const mostCharacters = 60;

/**
 * Draws numbers as a row of blocks, the highest one full; null leaves a gap. If there are more numbers than characters, neighbours are
 * merged to their maximum.
 */
export function sparkline(values: readonly (number | null)[]): string {
  const perCharacter = Math.ceil(values.length / mostCharacters);
  const groups = Array.from({ length: Math.ceil(values.length / perCharacter) }, (_, index) =>
    values.slice(index * perCharacter, (index + 1) * perCharacter).filter((value) => value !== null),
  );
  const heights = groups.map((group) => (group.length === 0 ? null : Math.max(...group)));
  const highest = Math.max(...heights.map((height) => height ?? 0), 0);
  const block = (height: number) => blocks[highest === 0 ? 0 : Math.round((height / highest) * (blocks.length - 1))];
  return heights.map((height) => (height === null ? " " : block(height))).join("");
}

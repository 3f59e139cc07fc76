import { seededRandom } from "./seeded-random.ts";

/** Whether every case of every file runs, as `npm test -- --all` requests. */
export const runsAll = process.env["BERTH_TEST_ALL"] === "1";

/** Draws `count` random cases and keeps their order. With `npm test -- --all` it returns all cases. */
export function drawCases<T>(cases: readonly T[], count: number, random = seededRandom()): readonly T[] {
  if (runsAll || count >= cases.length) return cases;
  process.stdout.write(`${count} of ${cases.length} cases are drawn; npm test -- --all runs every one\n`);
  const drawn = new Set<T>();
  while (drawn.size < count) drawn.add(cases[Math.floor(random() * cases.length)] as T);
  return cases.filter((each) => drawn.has(each));
}

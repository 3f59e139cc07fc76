import { randomInt } from "node:crypto";

/**
 * Random numbers in [0, 1) that can be repeated after a failed run: the function prints the seed, and `BERTH_TEST_SEED` sets it. The generator
 * is Mulberry32. The seed does not repeat events that depend on the machine's speed.
 */
export function seededRandom(): () => number {
  const seed = Number(process.env["BERTH_TEST_SEED"] ?? randomInt(2 ** 31));
  process.stdout.write(`random numbers: BERTH_TEST_SEED=${seed} repeats them\n`);
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

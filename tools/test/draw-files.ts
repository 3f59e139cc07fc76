import { processorSecondsOf } from "./measured-files.ts";
import type { TestFile } from "./test-files.ts";

/** The CPU seconds of the files that a usual run draws: with those of every run, five minutes of two cores (docs/testing.md). */
const drawnSeconds = 60;

export interface Drawn {
  /** Of the drawn files, those that the change can turn red. */
  readonly reached: readonly TestFile[];
  readonly files: readonly TestFile[];
  /** The files that this run leaves out. */
  readonly others: readonly TestFile[];
}

/**
 * Returns all files that are in every run, those that the change can turn red, and `count` shares of all others (test-files.ts). All shares
 * take about the same CPU time, so usual runs take about the same, and each file has the same chance. A file that takes longer than a share
 * is a share of its own.
 */
export function drawFiles(
  files: readonly TestFile[],
  random: () => number,
  count = 1,
  isReached: (file: TestFile) => boolean = () => false,
): Drawn {
  const reached = files.filter((file) => file.row !== "" && isReached(file));
  const shares = dealFiles(
    files.filter(({ row }) => row !== ""),
    random,
  );
  const drawn = new Set(reached);
  for (let taken = 0; taken < count && shares.length > 0; taken += 1)
    for (const file of shares.splice(Math.floor(random() * shares.length), 1).flat()) drawn.add(file);
  const isChosen = (file: TestFile) => file.row === "" || drawn.has(file);
  return { reached, files: files.filter(isChosen), others: files.filter((file) => !isChosen(file)) };
}

/** Deals the costliest file first, each into the share that has the least so far. */
function dealFiles(files: readonly TestFile[], random: () => number): (readonly TestFile[])[] {
  const costs = files.map((file) => ({ file, seconds: processorSecondsOf(file), key: random() }));
  const total = costs.reduce((sum, { seconds }) => sum + seconds, 0);
  const shares = Array.from({ length: Math.ceil(total / drawnSeconds) }, () => ({
    seconds: 0,
    files: [] as TestFile[],
  }));
  for (const { file, seconds } of costs.toSorted((one, other) => other.seconds - one.seconds || one.key - other.key)) {
    const share = shares.reduce((least, each) => (each.seconds < least.seconds ? each : least));
    share.seconds += seconds;
    share.files.push(file);
  }
  return shares.map((share) => share.files);
}

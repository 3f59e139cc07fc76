import { StringDecoder } from "node:string_decoder";
import type { ComparisonLimits } from "../../ports/repositories.ts";

/** The lines of one file in a patch, in unified form from the first `@@` on; null beyond the limit of all files together. */
export interface FileLines {
  readonly lines: string | null;
  /** Whether lines, or parts of lines, are missing. */
  readonly cut: boolean;
}

type PatchLimits = Pick<ComparisonLimits, "files" | "fileBytes" | "bytes">;

// A line of generated code may be as long as its file.
const longestLine = 2000;

/** Reads a patch of git while git prints it, so that a large one costs no more memory than the limits allow. */
export function createPatchReader({ files: mostFiles, fileBytes, bytes }: PatchLimits) {
  const decoder = new StringDecoder("utf8");
  const files: { lines: string[]; bytes: number; cut: boolean }[] = [];
  let [kept, rest, isInHunk, isLineCut] = [0, "", false, false];

  const begin = () => {
    files.push({ lines: [], bytes: 0, cut: false });
    isInHunk = false;
  };
  const take = (line: string, isCut: boolean) => {
    // Lines of a file begin with a sign or a space.
    if (line.startsWith("diff --git ")) return begin();
    const file = files.at(-1);
    if (line.startsWith("@@ ")) isInHunk = true;
    if (file === undefined || !isInHunk) return;
    const size = Buffer.byteLength(line) + 1;
    if (file.cut && file.bytes + size > fileBytes) return;
    if (file.bytes + size > fileBytes) return void (file.cut = true);
    file.cut ||= isCut;
    file.bytes += size;
    kept += size;
    file.lines.push(`${line}\n`);
  };
  const takeAll = (text: string) => {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      take(line.slice(0, longestLine), isLineCut || line.length > longestLine);
      isLineCut = false;
    }
    if (rest.length > longestLine) [rest, isLineCut] = [rest.slice(0, longestLine), true];
  };
  return {
    /** Returns false when the limits are reached and the rest need not be read. */
    add(chunk: Buffer): boolean {
      takeAll(decoder.write(chunk));
      return kept <= bytes && files.length <= mostFiles;
    },
    /** Returns what was read. `isWhole`: git has printed everything. */
    end(isWhole: boolean): FileLines[] {
      if (rest !== "") takeAll("\n");
      const last = files.length - 1;
      return files.map(({ lines, cut }, index) =>
        // Of the last one, an unknown part was not printed.
        index === last && !isWhole ? { lines: null, cut: true } : { lines: lines.join(""), cut },
      );
    },
  };
}

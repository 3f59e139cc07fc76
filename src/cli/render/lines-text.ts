import type { Answer } from "../../contract/client.ts";
import { oneLine, terminalText, type Paint } from "./text.ts";

type Lines = Answer<"deployments.lines">;

/** Shows the commits between two deployments, and the lines that differ. */
export function linesText(
  { commits, files, complete }: Lines,
  paint: Paint,
  more = "; `--file <path>` shows one file",
): string {
  const shown = [
    ...commits.map(
      ({ side, commit, author, message }) =>
        `${side === "added" ? "+" : "-"} ${commit.slice(0, 8)}  ${oneLine(message, 72)}  ${paint.dim(oneLine(author, 40))}`,
    ),
    ...(files ?? []).flatMap((file) => ["", ...fileLines(file, paint)]),
    ...(files === null ? ["A commit is no longer kept."] : []),
    ...(files?.length === 0 ? ["The code is the same."] : []),
    ...(complete ? [] : ["", `More differs than is shown${more}.`]),
  ];
  return shown.join("\n").replace(/^\n+/, "");
}

function fileLines(file: NonNullable<Lines["files"]>[number], paint: Paint): string[] {
  const { path, status, added, removed, binary, lines, cut } = file;
  const count = binary ? "binary" : added === null || removed === null ? "" : `+${added} -${removed}`;
  const title = paint.bold(`${status} ${oneLine(path, 200)}`);
  return [
    `${title}  ${count}`.trimEnd(),
    ...(lines ?? "")
      .split("\n")
      .slice(0, -1)
      .map((line) => painted(terminalText(line, { colours: false }), paint)),
    ...(cut ? [paint.dim("… lines are missing")] : []),
  ];
}

function painted(line: string, paint: Paint): string {
  if (line.startsWith("+")) return paint.green(line);
  if (line.startsWith("-")) return paint.red(line);
  return line.startsWith("@@") ? paint.dim(line) : line;
}

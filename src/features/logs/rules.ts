/** Where reading of a build's log stopped. */
export interface BuildCursor {
  readonly build_id: string;
  readonly offset: number;
}

/** A place in a build's log as a cursor's text. */
export function formatCursor({ build_id, offset }: BuildCursor): string {
  return `${build_id}:${offset}`;
}

/** The place that a cursor's text names; undefined for a text that is no such cursor. */
export function parseCursor(text: string): BuildCursor | undefined {
  const found = /^(bld_[0-9a-z]{1,40}):(\d{1,12})$/.exec(text);
  return found ? { build_id: found[1] as string, offset: Number(found[2]) } : undefined;
}

/** The complete lines of a log's text. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

import type { Answer } from "../../contract/client.ts";

type Entry = Answer<"timeline.list">["timeline"][number];

/** Makes one entry of several, newest first: what was requested and has ended counts once, and so does an event that repeats. */
export function foldEntries(entries: readonly Entry[]): Entry[] {
  const rows: { entry: Entry; times: number }[] = [];
  for (const entry of entries) {
    const asked = /^(.*) requested$/.exec(entry.summary)?.[1];
    const outcome = asked && rows.findLast(({ entry: { summary } }) => summary.startsWith(`${asked} `));
    const last = rows.at(-1);
    if (outcome !== undefined && outcome !== "" && outcome.entry.actor.type === "platform")
      outcome.entry = { ...outcome.entry, actor: entry.actor };
    else if (last !== undefined && last.entry.summary === entry.summary) last.times += 1;
    else rows.push({ entry, times: 1 });
  }
  return rows.map(({ entry, times }) =>
    times === 1 ? entry : { ...entry, summary: `${entry.summary}, ${times} times` },
  );
}

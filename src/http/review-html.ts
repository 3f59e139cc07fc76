import { rehearsalLines } from "../contract/rehearsal.ts";
import { escape, table, type Row } from "./decision-html.ts";
import type { Review } from "../features/approvals/approvals.ts";

export interface ShownReview extends Review {
  readonly project: string | null;
  readonly nonce: string;
}

/** Shows what a deploy would bring: the difference to what serves, where to look at it, and what its release command did to a copy. */
export function reviewHtml(review: ShownReview): string {
  const { live, commit, url, number, project, difference } = review;
  const compare =
    live === null || number === null || project === null
      ? []
      : [
          [
            "Compare",
            link(`/projects/${project}/compare?from=${live.number}&to=${number}`, "in the dashboard"),
          ] as const,
        ];
  const rows: readonly Row[] = [
    [
      "Serves now",
      live === null ? "nothing" : `deployment ${live.number}, <code>${escape(live.commit.slice(0, 8))}</code>`,
    ],
    [
      "Would serve",
      `<code>${escape(commit.slice(0, 8))}</code>${difference === null ? "" : countsText(difference.counts)}`,
    ],
    ...(url === null ? [] : [["Look at it", link(url, url)] as const]),
    ...compare,
  ];
  return `<h2>What changes</h2>${table(rows)}${filesHtml(review)}${review.isRehearsed ? "" : rehearsedHtml(review)}`;
}

const link = (to: string, text: string) => `<a href="${escape(to)}" rel="noreferrer noopener">${escape(text)}</a>`;

function countsText(counts: NonNullable<Review["difference"]>["counts"]): string {
  if (counts === null) return "";
  const less = counts.removed === 0 ? "" : `, without ${counts.removed} that serve now`;
  return ` (${counts.added} new ${counts.added === 1 ? "commit" : "commits"}${less})`;
}

const mostShown = 100;

function filesHtml({ live, difference }: Review): string {
  if (live === null) return "";
  if (difference === null) return "<p>Which files differ is not known: one of the commits is no longer stored.</p>";
  const { files } = difference;
  const more = files.length > mostShown ? ["and more"] : [];
  const lines = [...files.slice(0, mostShown), ...more].map(escape).join("\n");
  return files.length === 0 ? "<p>No file differs.</p>" : `<h2>Changed files</h2><pre>${lines}</pre>`;
}

function rehearsedHtml({ rehearsal, nonce }: ShownReview): string {
  const head = "<h2>Its release command on a copy of the data</h2>";
  const ask = `<form method="post"><input type="hidden" name="nonce" value="${escape(nonce)}"><button name="choice" value="rehearse">Rehearse it first</button></form>`;
  if (rehearsal === null)
    return `${head}<p>Not rehearsed. A rehearsal runs the release command with the project's variables on a copy of its data; nothing goes live.</p>${ask}`;
  const { status, reason, report, has_ended, problem } = rehearsal;
  if (!has_ended) return `${head}<p>The rehearsal is under way. Load this page again in a moment.</p>`;
  if (status === "passed" || status === "failed") {
    const lines = report === null ? [] : rehearsalLines(report).slice(0, mostShown);
    const said = status === "failed" ? `It failed, and would fail again: ${reason ?? ""}` : "It passed.";
    return `${head}<p${status === "failed" ? ' class="warning"' : ""}>${escape(said)}</p><pre>${lines.length === 0 ? "No table was changed." : lines.map(escape).join("\n")}</pre>`;
  }
  return `${head}<p>Not rehearsed: ${escape(reason ?? problem ?? "something newer took its place.")}</p>${ask}`;
}

import { hash } from "node:crypto";
import type { Affected, Decision } from "./handlers.ts";
import { plainPageStyle } from "../contract/plain-page.ts";
import { counted } from "../kit/counted.ts";

/** The content of the page. */
export interface ShownDecision extends Decision {
  /** Null when the request does not concern a project. */
  readonly affected: Affected | null;
  readonly nonce: string;
}

/** Renders the page that asks for a decision. */
export function decisionHtml({ approval, request, affected, nonce }: ShownDecision): string {
  const rows: readonly (readonly [string, string])[] = [
    ["Organization", `${escape(approval.org_name)} (${escape(approval.org_slug)})`],
    [
      "Asked by",
      `the token “${escape(approval.token_name)}” (${escape(approval.token_role)}, ${escape(approval.token_prefix)}…)`,
    ],
    ["Wants to", escape(request.summary)],
    ["Request", `<code>${escape(approval.method)} ${escape(approval.path)}</code>`],
    ...(approval.target === null ? [] : ([["Target", `<code>${escape(approval.target)}</code>`]] as const)),
    ...detailRows(request.detail),
    ["Asked at", minuteOf(approval.created_at)],
    ["Ends at", minuteOf(approval.expires_at)],
  ];
  const body = request.body === null ? "" : `<h2>What was sent</h2><pre>${escape(request.body)}</pre>`;
  const reach = affected === null ? "" : `<h2>What it reaches</h2>${table(affectedRows(affected))}`;
  const form = `<form method="post"><input type="hidden" name="nonce" value="${escape(nonce)}">
<button name="choice" value="approved">Approve</button> <button name="choice" value="denied">Deny</button></form>`;
  return page("A request waits for your decision", `${table(rows)}${body}${reach}${form}`);
}

const notices = {
  approved: ["Approved", "The request may now be repeated, once and within an hour."],
  denied: ["Denied", "Nothing was changed. The same can be asked for again after ten minutes."],
  used: ["Already decided", "This link was used; it works once."],
  expired: ["No longer open", "The request ended by itself, or the token that asked was revoked. Nothing was changed."],
  unknown: ["Not found", "This link leads nowhere. Was it copied whole?"],
  elsewhere: [
    "Not decided",
    "The decision did not come from the page behind the link, or the page was open for too long. Open the link again.",
  ],
  malformed: ["Not decided", "Choose one of the two buttons of the page behind the link."],
  fault: ["Not decided", "The platform could not answer. Try again in a moment."],
} as const;

export type Notice = keyof typeof notices;

/** Renders a page with a single notice. */
export function noticeHtml(notice: Notice): string {
  const [title, text] = notices[notice];
  return page(title, `<p>${escape(text)}</p>`);
}

const style = `${plainPageStyle}h2{margin:2rem 0 .75rem;font-size:1rem;font-weight:600}
table{width:100%;margin-top:1.25rem;border:1px solid var(--line);border-radius:6px;border-spacing:0;font-size:13px}
h2+table{margin-top:0}tr+tr>*{border-top:1px solid var(--line)}
th{padding:.5rem 1rem;text-align:left;vertical-align:top;font-weight:400;color:var(--muted);white-space:nowrap}td{width:100%;padding:.5rem 1rem;overflow-wrap:anywhere}
pre{margin:0;padding:1rem;overflow:auto;border:1px solid var(--line);border-radius:6px;background:var(--panel)}
form{display:flex;gap:.5rem;margin-top:2rem}button{height:36px;padding:0 1.25rem;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit;font:500 14px/1 inherit;font-family:inherit;cursor:pointer}
button[value=approved]{border-color:var(--bad);color:var(--bad)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media(width<640px){th,td{display:block;width:100%}th{padding-bottom:0}tr td{border-top:0}button{flex:1;height:44px}}`;

/** Headers under which the page loads and executes nothing, can't be framed, and submits forms only to its own origin. */
export const pageHeaders = {
  "cache-control": "no-store",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${hash("sha256", style, "base64")}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex",
} as const;

// With no-referrer, browsers submit forms with `Origin: null`. So the page itself sets the strictest policy that still sends the origin, to
// this host only; it has no links to other hosts.
const referrer = `<meta name="referrer" content="same-origin">`;

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">${referrer}<meta name="viewport" content="width=device-width">
<title>${escape(title)} · Berth</title><style>${style}</style></head>
<body><h1>${escape(title)}</h1>${content}</body></html>
`;
}

function table(rows: readonly (readonly [string, string])[]): string {
  return `<table>${rows.map(([name, cell]) => `<tr><th>${escape(name)}</th><td>${cell}</td></tr>`).join("")}</table>`;
}

function detailRows(detail: Readonly<Record<string, unknown>>): readonly (readonly [string, string])[] {
  return Object.entries(detail).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [name.replaceAll("_", " "), escape(text.slice(0, 500))];
  });
}

function affectedRows(affected: Affected): readonly (readonly [string, string])[] {
  const { hostnames, database, last_verified_backup_at: backup, requests_last_hour: requests } = affected;
  return [
    ["Hostnames", hostnames.length === 0 ? "none of its own" : hostnames.map(escape).join("<br>")],
    ["Database", database === null ? "none, or it does not answer now" : contentText(database)],
    ["Last verified backup", backup === null ? "none is known" : minuteOf(backup)],
    ["Requests in the last hour", requests === null ? "not known" : String(requests)],
  ];
}

function contentText({ tables, estimated_rows, size_bytes }: NonNullable<Affected["database"]>): string {
  const mib = (size_bytes / 1024 / 1024).toFixed(1);
  return `about ${counted(estimated_rows, "row")} in ${counted(tables, "table")}, ${mib} MiB`;
}

/** Formats a time for people, in UTC: the page has no script that could find the local time zone. */
function minuteOf(at: string): string {
  return escape(at.replace("T", " ").replace(/:\d\d(?:\.\d+)?Z$/, " UTC"));
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

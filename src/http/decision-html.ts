import { hash } from "node:crypto";
import type { SignOptions } from "./decision-proof.ts";
import type { Decision, Reach } from "../features/approvals/approvals.ts";
import { visible } from "../kit/visible.ts";
import { plainPageStyle } from "../contract/plain-page.ts";
import { bytesText } from "../kit/bytes-text.ts";

export interface ShownDecision extends Decision {
  /** What the request touches of its project; null when it does not concern a project. */
  readonly affected: Reach | null;
  /** What follows from the request, in sentences. */
  readonly effect: string | undefined;
  readonly nonce: string;
  /** What a deploy would bring, as HTML; empty for other requests. */
  readonly review: string;
  /** What the browser needs to sign each choice with a passkey; null if none is asked for. */
  readonly sign: SignOptions | null;
  /** Why the decision just sent was not made. */
  readonly problem: string | undefined;
  /** For a person who came from the dashboard; the page then links back to it. */
  readonly isSignedIn: boolean;
}

export type Row = readonly [name: string, cell: string];

export interface PageContent {
  readonly title: string;
  readonly html: string;
  readonly linksBack: boolean;
}

export function decisionContent(shown: ShownDecision): PageContent {
  const { approval, request, effect, affected, nonce, sign, problem } = shown;
  const rows: readonly Row[] = [
    ...(approval.project === null ? [] : ([["Project", escape(approval.project)]] as const)),
    ["Organization", `${escape(approval.org_name)} (${escape(approval.org_slug)})`],
    [
      "Requested by",
      `the token “${escape(approval.token_name)}” (${escape(approval.token_role)}, ${escape(approval.token_prefix)}…)`,
    ],
    ["Requested at", timeOf(approval.created_at)],
    ["Open until", timeOf(approval.expires_at)],
  ];
  const reaches = affected === null ? [] : affectedRows(affected);
  const reach = reaches.length === 0 ? "" : `<h2>What it reaches</h2>${table(reaches)}`;
  const signing =
    sign === null
      ? ["", ""]
      : [` data-sign="${escape(JSON.stringify(sign))}"`, `<input type="hidden" name="signature" value="">`];
  const trouble = problem === undefined ? "" : `<p class="warning" role="alert">${escape(problem)}</p>`;
  const form = `${trouble}<form method="post"${signing[0]}>${signing[1]}<input type="hidden" name="nonce" value="${escape(nonce)}">
<button name="choice" value="approved">Approve</button> <button name="choice" value="denied">Deny</button></form>`;
  const lead = effect === undefined ? "" : `<p>${escape(effect)}</p>`;
  // Shows the whole body above the buttons, because the summary omits details such as a new token's scopes.
  const lines = request.body === null || request.body === "{}" ? [] : request.body.split("\n");
  const sent = lines.length === 0 ? "" : `<h2>What was sent</h2><pre>${lines.map(escape).join("\n")}</pre>`;
  const { rehearsal } = request.detail;
  const shownLines = Array.isArray(rehearsal) ? rehearsal.map((line) => escape(String(line))) : [];
  const rehearsed =
    shownLines.length === 0 ? "" : `<h2>What it did to a copy of the data</h2><pre>${shownLines.join("\n")}</pre>`;
  const html = `<p class="order">${orderOf(shown)}</p>${lead}${shown.review}${rehearsed}${reach}<h2>Who asks</h2>${table(rows)}${sent}${form}${rawRequest(shown)}`;
  return { title: "A request waits for your decision", html, linksBack: shown.isSignedIn };
}

/** Returns the summary, with the time of the backup that it names as `timeOf` writes it. */
function orderOf({ summary, request }: ShownDecision): string {
  const takenAt = request.detail["taken_at"];
  if (typeof takenAt !== "string") return escape(summary);
  return escape(summary).replace(utcOf(takenAt), timeOf(takenAt));
}

function rawRequest({ approval, request: { summary, detail } }: ShownDecision): string {
  const rows: readonly Row[] = [
    ["Request", `<code>${escape(approval.method)} ${escape(approval.path)}</code>`],
    ["What it does", escape(summary)],
    ...(approval.target === null ? [] : ([["Target", `<code>${escape(approval.target)}</code>`]] as const)),
    ...detailRows(detail),
  ];
  return `<details><summary>The request itself</summary>${table(rows)}</details>`;
}

const notices = {
  approved: ["Approved", "The request may now be repeated, once and within an hour."],
  denied: ["Denied", "Nothing was changed. The same request can be made again after ten minutes."],
  used: ["Already decided", "This link was used; it works once."],
  expired: ["No longer open", "The request expired, or its token was revoked. Nothing was changed."],
  unknown: ["Not found", "Berth does not know this link. Check that you copied all of it."],
  elsewhere: [
    "Not decided",
    "The decision did not come from the page behind the link, or the page was open for too long. Open the link again.",
  ],
  not_yours: [
    "Not for you to decide",
    "An owner of the organization decides this, signed in with a token outside approval mode that may do the same itself. Anyone who has the link that was sent may decide, too.",
  ],
  signed_out: ["Sign in first", "Your session has ended. Sign in to the dashboard, and open the request there again."],
  malformed: ["Not decided", "Choose one of the two buttons of the page behind the link."],
  fault: ["Not decided", "The platform could not answer. Try again in a moment."],
} as const;

export type Notice = keyof typeof notices;

export function noticeContent(notice: Notice, isSignedIn = false): PageContent {
  const [title, text] = notices[notice];
  return { title, html: `<p>${escape(text)}</p>`, linksBack: isSignedIn };
}

const style = `${plainPageStyle}h2{margin:2rem 0 .75rem;font-size:1rem;font-weight:600}
table{width:100%;margin-top:1.25rem;border:1px solid var(--line);border-radius:6px;border-spacing:0;font-size:13px}
h2+table{margin-top:0}tr+tr>*{border-top:1px solid var(--line)}
th{padding:.5rem 1rem;text-align:left;vertical-align:top;font-weight:400;color:var(--muted);white-space:nowrap}td{width:100%;padding:.5rem 1rem;overflow-wrap:anywhere}
pre{margin:0;padding:1rem;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);border-radius:6px;background:var(--panel)}
form{display:flex;gap:.5rem;margin-top:2rem}button{height:36px;padding:0 1.25rem;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit;font:500 14px/1 inherit;font-family:inherit;cursor:pointer}
button[value=approved]{border-color:var(--bad);color:var(--bad)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.order{max-width:none;color:inherit;font-size:1.0625rem;font-weight:500;overflow-wrap:anywhere}.order+p{margin-top:.25rem}
.choice{display:block}.choice label{display:block}.choice fieldset{margin:0 0 1rem;padding:.75rem 1rem;border:1px solid var(--line);border-radius:6px}.choice legend{padding:0 .25rem;color:var(--muted);font-size:13px}.choice .within{margin:.25rem 0 .25rem 1.5rem;columns:2}.choice input[type=text]{display:block;margin:.25rem 0 1rem;height:36px;padding:0 .75rem;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit;font:inherit;letter-spacing:.1em;text-transform:uppercase}
.warning{margin-top:1rem;color:var(--bad)}details{margin-top:2rem;font-size:13px}summary{color:var(--muted);cursor:pointer}.back{display:inline-block;margin-top:2rem;color:var(--accent);font-size:13px}
@media(width<640px){th,td{display:block;width:100%}th{padding-bottom:0}tr td{border-top:0}button{flex:1;height:44px}}`;

// Has a passkey sign what a person decides, and writes the times in the reader's zone, with the exact one in UTC on hover. Without it the page shows UTC.
const script = `for(const t of document.querySelectorAll("time")){t.title=t.dateTime.replace("T"," ").replace(/(\\.\\d+)?Z$/," UTC");t.textContent=new Date(t.dateTime).toLocaleString("en-GB",{dateStyle:"medium",timeStyle:"short"})+" (your time)"}
const f=document.querySelector("form[data-sign]");f?.addEventListener("submit",async e=>{const s=f.elements.signature,b=e.submitter;if(s.value)return;e.preventDefault();try{const publicKey=PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(f.dataset.sign)[b.value]);s.value=JSON.stringify(await navigator.credentials.get({publicKey}));f.requestSubmit(b)}catch{}})`;

export const sha256 = (text: string) => `'sha256-${hash("sha256", text, "base64")}'`;

/** Returns the headers under which a page loads fonts and its script alone, can't be framed, and submits to itself and `answerTo` only. */
export function pageHeaders(fonts: string, answerTo = ""): Record<string, string> {
  return {
    "cache-control": "no-store",
    "content-security-policy": `default-src 'none'; style-src ${sha256(fonts + style)}; font-src 'self'; script-src ${sha256(script)}; form-action 'self'${answerTo}; base-uri 'none'; frame-ancestors 'none'`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
  };
}

// With no-referrer, browsers submit forms with `Origin: null`. So the page itself sets the strictest policy that still sends the origin, to
// this host only; it has no links to other hosts.
const referrer = `<meta name="referrer" content="same-origin">`;

/** Renders a page. `fonts` are font faces as CSS. */
export function renderContent({ title, html, linksBack }: PageContent, fonts: string): string {
  const back = linksBack ? `<a class="back" href="/approvals">Back to the approvals</a>` : "";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">${referrer}<meta name="viewport" content="width=device-width">
<title>${escape(title)} · Berth</title><style>${fonts}${style}</style></head>
<body><h1>${escape(title)}</h1>${html}${back}<script>${script}</script></body></html>
`;
}

export function table(rows: readonly Row[]): string {
  return `<table>${rows.map(([name, cell]) => `<tr><th>${escape(name)}</th><td>${cell}</td></tr>`).join("")}</table>`;
}

function detailRows(detail: Readonly<Record<string, unknown>>): readonly Row[] {
  return Object.entries(detail).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [name.replaceAll("_", " "), escape(text.slice(0, 500))];
  });
}

function affectedRows(affected: Reach): readonly Row[] {
  const {
    hostnames,
    table: rowsOf,
    database,
    last_verified_backup_at: backup,
    requests_last_hour: requests,
  } = affected;
  const rows: Row[] = [];
  if (hostnames !== undefined)
    rows.push(["Hostnames", hostnames.length === 0 ? "none of its own" : hostnames.map(escape).join("<br>")]);
  if (rowsOf !== undefined)
    rows.push(["Rows", rowsOf === null ? "one" : `one of about ${number.format(rowsOf.estimated_rows)} in the table`]);
  if (database !== undefined)
    rows.push(["Database", database === null ? "none, or it does not answer now" : contentText(database)]);
  if (backup !== undefined) rows.push(["Last verified backup", backup === null ? "none is known" : timeOf(backup)]);
  if (requests !== undefined)
    rows.push(["Requests in the last hour", requests === null ? "not known" : number.format(requests)]);
  return rows;
}

const number = new Intl.NumberFormat("en");
const counted = (count: number, noun: string) => `${number.format(count)} ${count === 1 ? noun : `${noun}s`}`;

function contentText({ tables, estimated_rows, size_bytes }: NonNullable<Reach["database"]>): string {
  return `about ${counted(estimated_rows, "row")} in ${counted(tables, "table")}, ${bytesText(size_bytes)}`;
}

/** Formats a time for people: in UTC, until the page's script writes it in the reader's zone. */
function timeOf(at: string): string {
  return `<time datetime="${escape(at)}">${escape(utcOf(at))}</time>`;
}

const utcOf = (at: string) => at.replace("T", " ").replace(/:\d\d(?:\.\d+)?Z$/, " UTC");

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escape(text: string): string {
  return visible(text).replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

import { escapeHtml, pages, renderPage, type PageCode } from "../../ports/edge-pages.ts";

/** Every file of pages: name and text. */
export function pageFiles(): Map<string, string> {
  const files = new Map(forms.map(({ form, accepts }) => [noticeFile(form), noticeFormat(form, accepts)]));
  files.set(typesMap, forms.map(({ accepts, type }) => `${accepts} ${type}\n`).join(""));
  for (const code of Object.keys(pages) as PageCode[]) {
    for (const { form, accepts } of forms) files.set(pageFile(code, form), renderPage(code, accepts).body);
    files.set(`pages/${code}.map`, forms.map(({ accepts }) => `${accepts} ${oneLine(code, accepts)}\n`).join(""));
  }
  return files;
}

/** A form of a page, and the part of `accept` that asks for it; the first that fits. */
export const forms = [
  { form: "html", type: "text/html; charset=utf-8", accepts: "text/html" },
  { form: "json", type: "application/json", accepts: "json" },
  { form: "text", type: "text/plain; charset=utf-8", accepts: "any" },
] as const;

/** What the client prefers, as the key of `typesMap` and of the pages' maps: "any" at its end leads to text. */
export const accept = "var(txn.accept,any),concat(any)";

/** The map from `accept` to the type of a form. */
export const typesMap = "pages/types.map";

type Form = (typeof forms)[number]["form"];

/** Where a page's body is. */
export function pageFile(code: PageCode, form: Form): string {
  return `pages/${code}.${form}`;
}

/** Where the body of a page with an application's own notice is, as a format of HAProxy's log. */
export function noticeFile(form: Form): string {
  return `pages/notice.${form}`;
}

/** The notice of a host map's value in a form. HAProxy's own `json` leaves out what UTF-8 writes in four bytes. */
export function noticeField(form: Form): string {
  return `var(txn.route),field(4,/),field(${{ html: 2, json: 3, text: 4 }[form]},|)`;
}

const place = "NOTICE";

function noticeFormat(form: Form, accepts: string): string {
  const notice = `%[${noticeField(form)},ub64dec]`;
  const { body } = renderPage("maintenance", accepts, place);
  return body.replaceAll("%", "%%").replace(place, notice);
}

/** A notice as a host map's value holds it. */
export function noticeValue(notice: string): string {
  return [escapeHtml(notice), JSON.stringify(notice).slice(1, -1), notice]
    .map((text) => Buffer.from(text).toString("base64url"))
    .join("|");
}

/** The fields of a page beside its type, as arguments of a rule. */
export function pageHeaders(code: PageCode): string {
  const { headers } = renderPage(code, "");
  const own = Object.entries(headers).filter(([name]) => !name.startsWith("content-"));
  return own.map(([name, value]) => ` hdr ${name} ${value}`).join("");
}

/** The arguments of a rule that answers for an application: HAProxy looks the body up by `Accept`, the frontend sets its type. */
export function appPage(code: PageCode, withStatus = true): string {
  const body = `"%[${accept},map_sub(pages/${code}.map)]"`;
  const status = withStatus ? `status ${pages[code].status} ` : "";
  return `${status}content-type "text/plain; charset=utf-8" lf-string ${body}${pageHeaders(code)}`;
}

/** A map has one line an entry. */
function oneLine(code: PageCode, accept: string): string {
  return renderPage(code, accept).body.trim().replaceAll("\n", " ");
}

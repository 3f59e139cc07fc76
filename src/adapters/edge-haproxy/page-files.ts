import { escapeHtml, pages, renderPage, type PageCode } from "../../ports/edge-pages.ts";

export function pageFiles(): Map<string, string> {
  const files = new Map(forms.map(({ form, accepts }) => [noticeFile(form), noticeFormat(form, accepts)]));
  files.set(
    refusedMap,
    refusals
      .flatMap((code) =>
        forms.map(
          (form) => `^${code}/${form.form === "text" ? "" : `.*${form.accepts}`} ${oneLine(code, form.accepts)}\n`,
        ),
      )
      .join(""),
  );
  files.set(typesMap, forms.map(({ accepts, type }) => `${accepts} ${type}\n`).join(""));
  for (const code of Object.keys(pages) as PageCode[]) {
    for (const { form, accepts } of forms) files.set(pageFile(code, form), renderPage(code, accepts).body);
    files.set(`pages/${code}.map`, forms.map(({ accepts }) => `${accepts} ${oneLine(code, accepts)}\n`).join(""));
  }
  return files;
}

/** The formats of a page, and the part of `Accept` that asks for each; the first match wins. */
export const forms = [
  { form: "html", type: "text/html; charset=utf-8", accepts: "text/html" },
  { form: "json", type: "application/json", accepts: "json" },
  { form: "text", type: "text/plain; charset=utf-8", accepts: "any" },
] as const;

/** The client's `Accept` as the key of `typesMap` and of the pages' maps. The appended "any" selects text when nothing else matches. */
export const accept = "var(txn.accept,any),concat(any)";

/** The map from a refusal's code and `Accept` to the page. */
export const refusedMap = "pages/refused.map";
const refusals = ["bad_request", "body_too_large"] as const;

/** The map from `Accept` to the content type. */
export const typesMap = "pages/types.map";

type Form = (typeof forms)[number]["form"];

export function pageFile(code: PageCode, form: Form): string {
  return `pages/${code}.${form}`;
}

/** Returns the file with the body of a page that contains an application's notice; the file is in HAProxy's log format. */
export function noticeFile(form: Form): string {
  return `pages/notice.${form}`;
}

/** Returns the expression for the notice in a format. HAProxy's own `json` converter drops characters that take four bytes in UTF-8. */
export function noticeField(form: Form): string {
  return `var(txn.route),field(4,/),field(${{ html: 2, json: 3, text: 4 }[form]},|)`;
}

const place = "NOTICE";

function noticeFormat(form: Form, accepts: string): string {
  const notice = `%[${noticeField(form)},ub64dec]`;
  const { body } = renderPage("maintenance", accepts, place);
  return body.replaceAll("%", "%%").replace(place, notice);
}

/** Encodes a notice for the host map: html, json and text, each in base64url. */
export function noticeValue(notice: string): string {
  return [escapeHtml(notice), JSON.stringify(notice).slice(1, -1), notice]
    .map((text) => Buffer.from(text).toString("base64url"))
    .join("|");
}

/** Returns a page's headers except its content type, as arguments of a rule. */
export function pageHeaders(code: PageCode): string {
  const { headers } = renderPage(code, "");
  const own = Object.entries(headers).filter(([name]) => !name.startsWith("content-"));
  return own.map(([name, value]) => ` hdr ${name} ${value}`).join("");
}

/** Returns the arguments of a rule that responds for an application: HAProxy selects the body by `Accept`, and the frontend sets the type. */
export function appPage(code: PageCode, withStatus = true): string {
  const body = `"%[${accept},map_sub(pages/${code}.map)]"`;
  const status = withStatus ? `status ${pages[code].status} ` : "";
  return `${status}content-type "text/plain; charset=utf-8" lf-string ${body}${pageHeaders(code)}`;
}

/** Returns a page's body as one line: a map has one entry per line. */
function oneLine(code: PageCode, accept: string): string {
  return renderPage(code, accept).body.trim().replaceAll("\n", " ");
}

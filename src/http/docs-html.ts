import { Marked, type Token, type Tokens } from "marked";
import { plainPageStyle } from "../contract/plain-page.ts";
import type { DocsPage } from "../mcp/pages.ts";
import { escape, sha256 } from "./decision-html.ts";

interface DocsContent {
  readonly title: string;
  readonly html: string;
  /** The name of the page; undefined for the list. */
  readonly name?: string;
}

interface Shown extends DocsContent {
  readonly pages: readonly DocsPage[];
  /** What was searched for. */
  readonly asked?: string;
}

/** Renders a page of the documentation, with the list of all pages and the search. It loads nothing but fonts of its own origin. */
export function renderDocs({ title, html, name, pages, asked = "" }: Shown, fonts: string) {
  const item = (page: DocsPage) =>
    `<li><a href="/docs/${page.name}"${page.name === name ? ` aria-current="page"` : ""}>${escape(page.title)}</a></li>`;
  const text = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(title)} · Berth</title><script>${themeScript}</script><style>${fonts}${style}</style></head>
<body><a class="skip" href="#page">Skip to the page</a><header><a href="/">Berth</a> <a href="/docs">Docs</a>
<form action="/docs" role="search"><input type="search" name="q" aria-label="Search the docs" placeholder="Search the docs" value="${escape(asked)}"></form></header>
<div class="columns"><nav aria-label="Pages"><ul>${pages.map(item).join("")}</ul></nav><main id="page">${html}</main></div></body></html>
`;
  const policy = `default-src 'none'; script-src ${sha256(themeScript)}; style-src ${sha256(fonts + style)}; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
  return { html: text, headers: { "content-security-policy": policy, "x-frame-options": "DENY" } };
}

export function listContent(pages: readonly DocsPage[]): DocsContent {
  const items = pages.map(
    ({ name, title, lead }) => `<li><a href="/docs/${name}">${escape(title)}</a><p>${inline(lead)}</p></li>`,
  );
  return { title: "Docs", html: `<h1>Docs</h1><ul class="found">${items.join("")}</ul>` };
}

export const unknownContent: DocsContent = {
  title: "No such page",
  html: `<h1>No such page</h1><p>The docs have no page of this name. <a href="/docs">All pages</a></p>`,
};

export function pageContent(page: DocsPage): DocsContent {
  const { html, sections } = readable(page);
  const within = sections.filter(({ depth }) => depth === 2);
  const items = within.map(({ anchor, heading }) => `<li><a href="#${anchor}">${escape(heading)}</a></li>`).join("");
  const list = within.length < 2 ? "" : `<details><summary>On this page</summary><ul>${items}</ul></details>`;
  return { title: page.title, name: page.name, html: html.replace("</h1>", () => `</h1>${list}`) };
}

const mostFound = 40;

/** Lists the sections in which all words are, those first whose headings have them. */
export function foundContent(pages: readonly DocsPage[], asked: string): DocsContent {
  const words = asked.toLowerCase().split(/\s+/);
  const has = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const found = pages
    .flatMap((page) => readable(page).sections.map((section) => ({ page, section })))
    .filter(({ page, section }) => has(`${page.title} ${section.heading} ${section.text}`))
    .toSorted((a, b) => Number(has(b.section.heading)) - Number(has(a.section.heading)));
  const items = found.slice(0, mostFound).map(({ page, section: { anchor, heading, text } }) => {
    const title = heading === page.title ? heading : `${page.title} › ${heading}`;
    return `<li><a href="/docs/${page.name}#${anchor}">${escape(title)}</a><p>${excerpt(text, words)}</p></li>`;
  });
  const count = found.length > mostFound ? `The first ${mostFound} of ${found.length} sections` : undefined;
  const lead = found.length === 0 ? "No section has all of these words." : (count ?? `Sections: ${found.length}`);
  return {
    title: `${asked} · Docs`,
    html: `<h1>Search: ${escape(asked)}</h1><p role="status">${lead}</p><ul class="found">${items.join("")}</ul>`,
  };
}

const [before, length] = [80, 240];

function excerpt(text: string, words: readonly string[]): string {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const from = Math.max(0, Math.min(...(places.length === 0 ? [0] : places)) - before);
  const start = from === 0 ? 0 : text.indexOf(" ", from) + 1;
  const part = text.slice(start, start + length);
  const pattern = new RegExp(`(${words.map((word) => RegExp.escape(word)).join("|")})`, "giu");
  const marked = part
    .split(pattern)
    .map((piece, at) => (at % 2 === 1 ? `<mark>${escape(piece)}</mark>` : escape(piece)));
  return `${start > 0 ? "… " : ""}${marked.join("")}${start + length < text.length ? " …" : ""}`;
}

interface Section {
  readonly anchor: string;
  readonly heading: string;
  readonly depth: number;
  /** Without marks. */
  readonly text: string;
}

const made = new WeakMap<DocsPage, { readonly html: string; readonly sections: readonly Section[] }>();

/** Returns a page as HTML and its sections. Each page is converted once; only Berth's own files are, and their HTML is shown as text. */
function readable(page: DocsPage) {
  const known = made.get(page);
  if (known !== undefined) return known;
  const anchors = new Map<string, number>();
  const sections: Section[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const heading = plainText(tokens);
        const anchor = anchorOf(heading, anchors);
        sections.push({ anchor, heading, depth, text: "" });
        return `<h${depth} id="${anchor}"><a href="#${anchor}">${this.parser.parseInline(tokens)}</a></h${depth}>\n`;
      },
      html: ({ text }) => (text.startsWith("<!--") ? "" : escape(text)),
      link({ href, tokens }) {
        const address = escape(href.replace(/^([\w-]+)\.md(?=#|$)/, "/docs/$1"));
        return `<a href="${address}">${this.parser.parseInline(tokens)}</a>`;
      },
    },
  });
  const tokens = marked.lexer(page.text);
  const html = marked
    .parser(tokens)
    .replaceAll("<pre>", `<pre tabindex="0">`)
    .replaceAll("<table>", `<div class="table" tabindex="0"><table>`)
    .replaceAll("</table>", "</table></div>");
  const texts = tokens.reduce<string[]>((all, token) => {
    if (token.type === "heading") all.push("");
    else if (all.length > 0 && token.type !== "html")
      all[all.length - 1] += `${token.raw.replaceAll(/[`*|]|\]\([^)]*\)|\[/g, " ")} `;
    return all;
  }, []);
  const full = sections.map((section, at) => ({ ...section, text: (texts[at] ?? "").replaceAll(/\s+/g, " ").trim() }));
  const done = { html, sections: full };
  made.set(page, done);
  return done;
}

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) => ("tokens" in token ? plainText(token.tokens ?? []) : (token as Tokens.Text).text))
    .join("");
}

/** Makes the anchor of a heading as GitHub does, so that the files' links work in both places. */
function anchorOf(heading: string, taken: Map<string, number>): string {
  const plain = heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
  const count = taken.get(plain) ?? 0;
  taken.set(plain, count + 1);
  return count === 0 ? plain : `${plain}-${count}`;
}

const inline = (text: string) => escape(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");

// The theme chosen in the dashboard, before the first paint.
const themeScript = `try{var t=localStorage.getItem("berth-theme");if(t==="light"||t==="dark")document.documentElement.dataset.theme=t}catch(e){}`;

const style = `${plainPageStyle}:root[data-theme=light]{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}
html{scroll-padding-top:4rem}body{max-width:none;padding:0}p{max-width:75ch;margin:.75rem 0;color:inherit}
a{color:var(--accent)}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:.5rem;top:.5rem}
header{position:sticky;top:0;z-index:1;display:flex;align-items:center;gap:1rem;min-height:3rem;padding:.25rem 1.5rem;border-bottom:1px solid var(--line);background:var(--panel)}
header a{padding:.5rem 0;font-weight:600;color:inherit;text-decoration:none}form{margin-left:auto;min-width:0}
input{width:16rem;max-width:100%;height:36px;padding:0 .75rem;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit;font:inherit}input::placeholder{color:var(--muted);opacity:1}
.columns{display:flex;max-width:80rem;margin:0 auto}
nav{position:sticky;top:3rem;flex:none;width:17rem;max-height:calc(100dvh - 3rem);overflow-y:auto;padding:1.25rem .5rem 2rem 1.5rem;font-size:13px}
nav ul,.found{margin:0;padding:0;list-style:none}nav a{display:block;padding:.25rem .5rem;border-radius:6px;color:var(--muted);text-decoration:none}nav a:hover{color:var(--text)}nav [aria-current]{background:var(--line);color:var(--text);font-weight:500}
main{flex:1;min-width:0;padding:1.5rem 1.5rem 6rem}
.found li{padding:.75rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}.found a{font-weight:500}.found p{margin:.125rem 0 0;color:var(--muted)}mark{background:none;color:inherit;font-weight:600;text-decoration:underline}
h2{margin:2.5rem 0 .5rem;font-size:1.125rem;font-weight:600}h3{margin:1.75rem 0 .5rem;font-size:1rem;font-weight:600}
h1 a,h2 a,h3 a,h4 a{color:inherit;text-decoration:none}h2 a:hover,h3 a:hover{text-decoration:underline}
li{max-width:75ch;overflow-wrap:anywhere}ul,ol{padding-left:1.25rem}details{margin:.75rem 0}summary{color:var(--muted);cursor:pointer}
pre{margin:1rem 0;padding:.875rem 1rem;overflow-x:auto;border:1px solid var(--line);border-radius:6px;background:var(--panel);line-height:1.5}
code{overflow-wrap:anywhere}pre code{overflow-wrap:normal}
.table{margin:1rem 0;overflow-x:auto;border:1px solid var(--line);border-radius:6px}table{width:100%;border-spacing:0;font-size:13px}
th,td{min-width:7rem;padding:.5rem .875rem;text-align:left;vertical-align:top}th{font-weight:500;color:var(--muted)}td{border-top:1px solid var(--line)}
@media(width<900px){nav{display:none}header{padding:.25rem 1rem}main{padding:1.25rem 1rem 4rem}}`;

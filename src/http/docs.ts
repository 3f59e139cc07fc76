import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readPages, type DocsPage } from "../mcp/pages.ts";

interface DocsOptions {
  readonly controlUrl: () => string;
  /** Returns the dashboard's font faces as CSS; empty while there is no bundle. */
  readonly fonts: () => string;
}

type Asked = FastifyRequest<{ Params: { name: string }; Querystring: Record<string, unknown> }>;

/** Adds the documentation for people at `/docs`, each page as Markdown at `/docs/NAME.md`, and `/llms.txt`, its list for models. */
export function addDocs(app: FastifyInstance, { controlUrl, fonts }: DocsOptions): void {
  const load = async () => ({ pages: await readPages(), html: await import("./docs-html.ts") });
  const index = async ({ query }: Asked, reply: FastifyReply) => {
    const { pages, html } = await load();
    const asked = typeof query["q"] === "string" ? query["q"].trim().slice(0, 100) : "";
    const content = asked === "" ? html.listContent(pages) : html.foundContent(pages, asked);
    return sendPage(reply, html.renderDocs({ ...content, pages, asked }, fonts()));
  };
  app.get("/docs", index);
  app.get("/docs/", index);
  app.get("/docs/:name", async ({ params: { name } }: Asked, reply) => {
    const { pages, html } = await load();
    const raw = pages.find((page) => `${page.name}.md` === name);
    if (raw !== undefined) return reply.type("text/markdown; charset=utf-8").send(raw.text);
    const page = pages.find((one) => one.name === name);
    const content = page === undefined ? html.unknownContent : html.pageContent(page);
    return sendPage(reply.code(page === undefined ? 404 : 200), html.renderDocs({ ...content, pages }, fonts()));
  });
  app.get("/llms.txt", async (_, reply) =>
    reply.type("text/plain; charset=utf-8").send(listForModels(await readPages(), controlUrl().replace(/\/$/, ""))),
  );
}

function sendPage(reply: FastifyReply, page: { readonly html: string; readonly headers: Record<string, string> }) {
  return reply.headers(page.headers).type("text/html; charset=utf-8").send(page.html);
}

/** As https://llmstxt.org describes it. */
function listForModels(pages: readonly DocsPage[], base: string): string {
  const lines = pages.map(({ name, title, lead }) => `- [${title}](${base}/docs/${name}.md): ${lead}`);
  return `# Berth

> A platform for applications on your own machine: deploy by git push, with databases, domains, cron, backups and rollback.

Begin with [how an agent deploys here](${base}/skill.md). The API is ${base}/v1, its description ${base}/v1/openapi.json; tools for models are at ${base}/mcp.

## Documentation

${lines.join("\n")}
`;
}

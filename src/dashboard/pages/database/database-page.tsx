import { Link } from "@tanstack/react-router";
import { Database } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useSlug, usePages } from "../../data/api.ts";
import { bytes, count, visible } from "../../data/format.ts";
import { useHasDatabase } from "../../data/use-has-database.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { Command } from "../../ui/button.tsx";
import { Older, Table, type Column } from "../../ui/table.tsx";
import { Page, Section, Empty, View } from "../../ui/page.tsx";
import { State, Tag, Ago, Fact, Prose, Mono } from "../../ui/text.tsx";
import { Branches } from "../branches/branches.tsx";
import { QueryBox } from "../data/query-box.tsx";
import { Connections } from "./connections.tsx";
import { createDatabase } from "./create-database.ts";
import { Extensions } from "./extensions.tsx";
import { Statements } from "./statements.tsx";

type TableRow = Answer<"data.tables">["tables"][number];

export function DatabasePage() {
  const slug = useSlug();
  const has = useHasDatabase(slug);
  const database = useCall("database.get", { params: { slug } }, { enabled: has === true });
  if (has === false)
    return (
      <Page wide title="Database">
        <NoDatabase slug={slug} />
      </Page>
    );
  return (
    <Page
      wide
      title="Database"
      lead="The project's own PostgreSQL database. The application finds it in DATABASE_URL; its password is shown nowhere."
    >
      <View of={database}>
        {(data) => (
          <>
            <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 sm:grid-cols-5">
              <Fact label="Status">
                <State of={data.status} />
              </Fact>
              <Fact label="Version">{data.engine_version ?? "–"}</Fact>
              <Fact label="Size">{bytes(data.size_bytes)}</Fact>
              <Fact label="Connections">{data.connections ?? "–"}</Fact>
              <Fact label="Created">
                <Ago at={data.created_at} />
              </Fact>
            </dl>
            {data.failure !== null && (
              <p className="text-sm text-bad">
                <Prose>{`${data.failure.summary} ${data.failure.hint}`}</Prose>
              </p>
            )}
            {data.status === "ready" && (
              <>
                <Tables slug={slug} />
                <QueryBox slug={slug} />
                <ConnectHelp slug={slug} />
                <Connections slug={slug} />
                <Statements slug={slug} />
                <Branches slug={slug} />
                <Extensions slug={slug} />
              </>
            )}
          </>
        )}
      </View>
    </Page>
  );
}

function NoDatabase({ slug }: { readonly slug: string }) {
  const { text, ...create } = createDatabase(slug);
  return (
    <Empty
      icon={<Database size={24} />}
      title="No database yet"
      command={`berth db create --project ${slug}`}
      action={<ActionButton look="primary" {...create} />}
    >
      {text}
    </Empty>
  );
}

function Tables({ slug }: { readonly slug: string }) {
  const tables = usePages("data.tables", { params: { slug }, query: { limit: 500 } });
  return (
    <Section title="Tables">
      <View of={tables}>
        {({ pages }) =>
          pages[0]?.tables.length === 0 ? (
            <Empty title="No tables yet">
              Migrations of the application make them; they can run as its release command.
            </Empty>
          ) : (
            <>
              <Table
                caption="Tables"
                rows={pages.flatMap((page) => page.tables)}
                columns={columnsFor(slug)}
                keyOf={({ schema, name }) => `${schema}.${name}`}
              />
              <Older of={[tables]} label="Show more tables" />
            </>
          )
        }
      </View>
    </Section>
  );
}

function columnsFor(slug: string): readonly Column<TableRow>[] {
  return [
    {
      head: "Table",
      grow: true,
      cell: ({ schema, name }) => (
        <Link
          to="/projects/$slug/database/$schema/$table"
          params={{ slug, schema, table: name }}
          className="font-mono font-medium hover:text-accent"
        >
          {visible(schema === "public" ? name : `${schema}.${name}`)}
        </Link>
      ),
    },
    { head: "Kind", wide: true, cell: ({ kind }) => <Tag>{kind.replaceAll("_", " ")}</Tag> },
    { head: "Rows, about", end: true, cell: ({ estimated_rows: rows }) => (rows === null ? "–" : count(rows)) },
    { head: "Size", end: true, wide: true, cell: ({ size_bytes: size }) => bytes(size) },
  ];
}

/** How the application, a person and a program reach the database. No password is shown anywhere. */
function ConnectHelp({ slug }: { readonly slug: string }) {
  const ways = [
    ["psql, as an owner", `berth db psql --project ${slug}`],
    ["A graphical tool on this machine, until Ctrl-C", `berth db tunnel --project ${slug} --port 5433`],
    ["A copy as a file", `berth db dump --project ${slug} > ${slug}.dump`],
  ] as const;
  return (
    <Section
      title="Connect"
      lead={
        <>
          The application connects with <Mono>DATABASE_URL</Mono>, which is set for it. From elsewhere, a tunnel makes a
          role with a password of its own that ends with it; neither is stored or shown.
        </>
      }
    >
      <dl className="grid gap-3 lg:grid-cols-3">
        {ways.map(([what, command]) => (
          <div key={what} className="min-w-0">
            <dt className="mb-1 text-xs text-faint">{what}</dt>
            <dd>
              <Command>{command}</Command>
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

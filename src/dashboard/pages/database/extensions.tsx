import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { Button } from "../../ui/button.tsx";
import { Section, View } from "../../ui/page.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

type Extension = Answer<"data.extensions">["extensions"][number];

/** Lists PostgreSQL's extensions; those that are not installed on request. */
export function Extensions({ slug }: { readonly slug: string }) {
  const extensions = useCall("data.extensions", { params: { slug }, query: {} });
  const [isWhole, setWhole] = useState(false);
  return (
    <Section
      title="Extensions"
      lead={
        <>
          A migration of the application creates one with <Mono>CREATE EXTENSION</Mono>, if the project may; the others
          need a superuser of the server.
        </>
      }
    >
      <View of={extensions}>
        {({ extensions: all }) => {
          const available = all.filter(({ version }) => version === null).length;
          return (
            <>
              <Table
                caption="Extensions"
                rows={all.filter(({ version }) => isWhole || version !== null)}
                columns={columns}
                phone={(extension) => <Item of={extension} />}
                keyOf={({ name }) => name}
              />
              {available > 0 && (
                <div>
                  <Button aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
                    {isWhole ? "Show only the installed ones" : `Show ${plural(available, "available one")}`}
                  </Button>
                </div>
              )}
            </>
          );
        }}
      </View>
    </Section>
  );
}

function Item({ of: { name, version, available_version: available, creator } }: { readonly of: Extension }) {
  const who = creator === "project" ? "the project" : "the operator";
  return (
    <>
      <Mono className="font-medium">{name}</Mono>
      <p className="text-xs text-muted">
        {version === null ? `${available ?? ""}, not installed; ${who} may create it` : `${version}, installed`}
      </p>
    </>
  );
}

const columns: readonly Column<Extension>[] = [
  { head: "Extension", cell: ({ name }) => <Mono className="font-medium">{name}</Mono> },
  {
    head: "Version",
    cell: ({ version, available_version: available }) =>
      version ?? <span className="text-faint">{available ?? "–"}, not installed</span>,
  },
  { head: "About", grow: true, wide: true, cell: ({ about }) => <Plain>{about}</Plain> },
  {
    head: "Created by",
    end: true,
    cell: ({ creator }) => (creator === "project" ? "the project" : "the operator"),
  },
];

import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Plain } from "../../ui/text.tsx";
import { createRemoval } from "../../ui/action-dialog.tsx";
import { TokenRights } from "./token-rights.tsx";

type Token = Answer<"tokens.list">["api_tokens"][number];

/** Lists the programs that people connected by a consent page: command lines, and agents at `/mcp`. */
export function ConnectedPrograms() {
  const tokens = useCall("tokens.list", {});
  // The list of tokens above comes from the same call, and says why.
  if (tokens.isError) return null;
  return (
    <Section
      title="Connected programs"
      lead={`Command lines and agents that people let in. An agent connects with the address ${location.origin}/mcp.`}
    >
      <List
        of={tokens}
        caption="Connected programs"
        rows={(data) => data.api_tokens.filter(({ kind }) => kind !== "token")}
        columns={[...columns, removal.column]}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No program is connected" command={`berth login ${location.origin}`}>
            It opens this browser and asks.
          </Empty>
        }
      />
    </Section>
  );
}

const removal = createRemoval({
  row: "tokens.delete",
  title: "Disconnect a program",
  verb: "Disconnect",
  nameOf: ({ name }: Token) => name,
  input: ({ id }) => ({ params: { id } }),
  warning: "It is refused within a second, until a person connects it again.",
});

const columns: readonly Column<Token>[] = [
  {
    head: "Program",
    grow: true,
    cell: ({ name, person, kind }) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <Plain className="truncate font-medium">{name}</Plain>
        <span className="truncate text-xs text-faint">
          {kind === "mcp" ? "agent at /mcp" : "command line"}
          {person !== null && (
            <>
              , for <Plain>{person}</Plain>
            </>
          )}
        </span>
      </span>
    ),
  },
  { head: "Role", wide: true, cell: (token) => <TokenRights of={token} /> },
  timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
  timeColumn("Expires", (row) => row.expires_at, { none: "never" }),
];

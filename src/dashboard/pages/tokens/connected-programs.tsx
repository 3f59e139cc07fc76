import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { RemoveButton } from "../../ui/button.tsx";
import { List } from "../../ui/list.tsx";
import { Section } from "../../ui/page.tsx";
import { timeColumn, type Column } from "../../ui/table.tsx";
import { Plain } from "../../ui/text.tsx";
import { Empty } from "../../ui/view.tsx";
import { TokenRights } from "./token-rights.tsx";

type Token = Answer<"tokens.list">["api_tokens"][number];

/** Lists the programs that people connected by a consent page: command lines, and agents at `/mcp`. */
export function ConnectedPrograms() {
  const tokens = useCall("tokens.list", {});
  const [ending, setEnding] = useState<Token>();
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
        columns={columnsFor(setEnding)}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No program is connected" command={`berth login ${location.origin}`}>
            It opens this browser and asks.
          </Empty>
        }
      />
      {ending !== undefined && (
        <ConfirmAction
          row="tokens.delete"
          title="Disconnect a program"
          submit="Disconnect"
          typed={ending.name}
          input={{ params: { id: ending.id } }}
          onClose={() => setEnding(undefined)}
        >
          It is refused within a second, until a person connects it again.
        </ConfirmAction>
      )}
    </Section>
  );
}

function columnsFor(onEnd: (token: Token) => void): readonly Column<Token>[] {
  return [
    {
      head: "Program",
      grow: true,
      cell: ({ name, person, kind }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <span className="truncate font-medium">
            <Plain>{name}</Plain>
          </span>
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
    {
      head: "",
      end: true,
      cell: (token) => (
        <RemoveButton row="tokens.delete" label={`Disconnect ${token.name}`} onClick={() => onEnd(token)} />
      ),
    },
  ];
}

import { Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { Tag, Ago, Mono, Plain } from "../../ui/text.tsx";
import { createRemoval } from "../../ui/action-dialog.tsx";
import { People } from "../people/people.tsx";
import { Registries } from "../registries/registries.tsx";
import { SshKeys } from "../ssh-keys/ssh-keys.tsx";
import { Webhooks } from "../webhooks/webhooks.tsx";
import { ConnectedPrograms } from "./connected-programs.tsx";
import { CreateToken } from "./create-token.tsx";
import { TokenRights } from "./token-rights.tsx";

type Token = Answer<"tokens.list">["api_tokens"][number];

/** The page of people, API tokens, connected programs, SSH keys, webhooks and logins to image registries. */
export function AccessPage() {
  const tokens = useCall("tokens.list", {});
  const me = useMe();
  const action = (
    <DialogButton look="primary" icon={<Plus size={15} />} row="tokens.create" dialog={<CreateToken />}>
      New token
    </DialogButton>
  );
  return (
    <Page
      title="Access"
      lead="People, and tokens for agents and scripts; each sees this organization alone."
      actions={action}
    >
      <People />
      <Section title="Tokens" lead="For agents, scripts and the command line.">
        <List
          of={tokens}
          caption="API tokens"
          rows={(data) => data.api_tokens.filter(({ kind }) => kind === "token")}
          columns={[...columnsFor(me.token.id), removal.column]}
          keyOf={({ id }) => id}
        />
      </Section>
      <ConnectedPrograms />
      <SshKeys />
      <Webhooks />
      <Registries />
    </Page>
  );
}

const removal = createRemoval({
  row: "tokens.delete",
  title: "Revoke a token",
  verb: "Revoke",
  nameOf: ({ name }: Token) => name,
  input: ({ id }) => ({ params: { id } }),
  warning:
    "Everything that uses it is refused within a second, including sessions of this dashboard and the SSH keys it registered.",
});

function columnsFor(own: string): readonly Column<Token>[] {
  return [
    {
      head: "Token",
      grow: true,
      cell: (token) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <span className="flex items-center gap-2 font-medium">
            <Plain className="truncate">{token.name}</Plain>
            {token.id === own && <Tag>this session</Tag>}
          </span>
          <Mono className="text-xs text-faint">{`${token.prefix}…`}</Mono>
          <span className="mt-1 flex flex-wrap items-center gap-x-2 text-xs text-faint sm:hidden">
            <TokenRights of={token} />
            <span>used {token.last_used_at === null ? "never" : <Ago at={token.last_used_at} />}</span>
            {token.expires_at !== null && (
              <span>
                expires <Ago at={token.expires_at} />
              </span>
            )}
          </span>
        </span>
      ),
    },
    { head: "Role", wide: true, cell: (token) => <TokenRights of={token} /> },
    {
      head: "Scopes",
      wide: true,
      cell: ({ scopes }) => (
        <span title={scopes.join(", ")} className="text-muted">
          {areasOf(scopes)}
        </span>
      ),
    },
    timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
    timeColumn("Expires", (row) => row.expires_at, { none: "never" }),
  ];
}

/** Says in short to what scopes lead: `projects, deployments and 12 more`. */
function areasOf(scopes: readonly string[]): string {
  const areas = [...new Set(scopes.map((scope) => scope.split(":", 1)[0]))];
  return areas.length > 3 ? `${areas.slice(0, 2).join(", ")} and ${areas.length - 2} more` : areas.join(", ");
}

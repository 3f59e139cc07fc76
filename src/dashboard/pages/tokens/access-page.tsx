import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { useMe, useWhyNot } from "../../data/me.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { Tag } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Mono, Plain } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";
import { Registries } from "../registries/registries.tsx";
import { SshKeys } from "../ssh-keys/ssh-keys.tsx";
import { Webhooks } from "../webhooks/webhooks.tsx";
import { CreateToken } from "./create-token.tsx";

type Token = Answer<"tokens.list">["api_tokens"][number];

/** Who and what may come in: tokens for the API, keys for git. */
export function AccessPage() {
  const tokens = useCall("tokens.list", {});
  const why = useWhyNot("tokens.create");
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  const me = useMe();
  const action = (
    <Button look="primary" icon={<Plus size={15} />} why={why} onClick={() => setCreating(true)}>
      New token
    </Button>
  );
  return (
    <Page
      title="Access"
      lead="Tokens for people, agents and scripts; each sees this organization alone."
      actions={action}
    >
      <View of={tokens}>
        {(data) => (
          <Table
            caption="API tokens"
            rows={data.api_tokens}
            columns={columnsFor(me.token.id, setRevoking)}
            keyOf={({ id }) => id}
          />
        )}
      </View>
      <SshKeys />
      <Webhooks />
      <Registries />
      {creating && <CreateToken onClose={() => setCreating(false)} />}
      {revoking !== undefined && <Revoke token={revoking} onClose={() => setRevoking(undefined)} />}
    </Page>
  );
}

function columnsFor(own: string, onRevoke: (token: Token) => void): readonly Column<Token>[] {
  return [
    {
      head: "Token",
      grow: true,
      cell: ({ id, name, prefix }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <span className="flex items-center gap-2 font-medium">
            <Plain>{name}</Plain>
            {id === own && <Tag>this session</Tag>}
          </span>
          <Mono className="text-xs text-faint">{`${prefix}…`}</Mono>
        </span>
      ),
    },
    {
      head: "Role",
      cell: ({ role, platform_admin: admin, approval_mode: approval }) => (
        <span className="inline-flex gap-1">
          <Tag>{admin ? "operator" : role}</Tag>
          {approval && <Tag>approval mode</Tag>}
        </span>
      ),
    },
    {
      head: "Scopes",
      wide: true,
      end: true,
      cell: ({ scopes }) => (
        <span title={scopes.join(", ")} className="text-muted">
          {scopes.length}
        </span>
      ),
    },
    {
      head: "Last used",
      wide: true,
      end: true,
      cell: ({ last_used_at: at }) => <span className="text-muted">{at === null ? "never" : <Ago at={at} />}</span>,
    },
    {
      head: "Expires",
      wide: true,
      end: true,
      cell: ({ expires_at: at }) => <span className="text-muted">{at === null ? "never" : <Ago at={at} />}</span>,
    },
    { head: "", end: true, cell: (token) => <RevokeButton token={token} onRevoke={onRevoke} /> },
  ];
}

function RevokeButton({ token, onRevoke }: { readonly token: Token; readonly onRevoke: (token: Token) => void }) {
  return (
    <IconButton label={`Revoke ${token.name}`} onClick={() => onRevoke(token)}>
      <Trash2 size={14} />
    </IconButton>
  );
}

function Revoke({ token, onClose }: { readonly token: Token; readonly onClose: () => void }) {
  const revoke = useAction("tokens.delete");
  const why = useWhyNot("tokens.delete");
  return (
    <ConfirmDialog
      title="Revoke a token"
      submit="Revoke"
      typed={token.name}
      why={why}
      busy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() => revoke.mutate({ params: { id: token.id } }, { onSuccess: onClose })}
    >
      <p className="text-sm text-muted">
        Whatever uses it is refused within a second, sessions of this dashboard and the SSH keys it registered included.
      </p>
    </ConfirmDialog>
  );
}

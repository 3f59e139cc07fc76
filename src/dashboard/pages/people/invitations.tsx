import type { Answer } from "../../../contract/client.ts";
import { useCall, useWhyNot } from "../../data/api.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Plain } from "../../ui/text.tsx";
import { Rights } from "./rights.tsx";

type Invite = Answer<"people.invites">["invites"][number];

/** Lists the open invitations, for owners; nothing if there are none. */
export function Invitations() {
  return useWhyNot("people.invites") === undefined ? <Open /> : null;
}

function Open() {
  const invites = useCall("people.invites", {});
  if ((invites.data?.invites.length ?? 0) === 0) return null;
  return (
    <List
      of={invites}
      caption="Open invitations"
      rows={(data) => data.invites}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Invitation",
          grow: true,
          cell: ({ email, invited_by: by }) => <Plain>{email ?? `by ${by}`}</Plain>,
        },
        { head: "Role", cell: (invite) => <Rights of={invite} /> },
        timeColumn("Expires", (row: Invite) => row.expires_at),
        {
          head: "",
          end: true,
          cell: ({ id, email }) => (
            <ActionButton
              look="quiet"
              row="people.revoke"
              label="Revoke"
              aria-label={`Revoke the invitation ${email ?? id}`}
              input={{ params: { id } }}
            />
          ),
        },
      ]}
    />
  );
}

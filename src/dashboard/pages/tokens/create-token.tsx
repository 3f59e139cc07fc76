import { useState } from "react";
import { roles, scopes, type Role } from "../../../contract/access.ts";
import { useMe } from "../../data/api.ts";
import { textOf, Checkbox, NumberField, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Several, SomeProjects } from "./several.tsx";

/** Creates a token with some of the user's own rights, and shows its text once. */
export function CreateToken() {
  const me = useMe();
  const [role, setRole] = useState<Role>("member");
  const [chosen, setChosen] = useState<readonly string[]>();
  const [within, setWithin] = useState<readonly string[] | null>(null);
  const mayRoles = me.role === "owner" || me.platform_admin ? roles : (["member"] as const);
  const own = scopes.filter((scope) => me.token.scopes.includes(scope));
  const input = (form: FormData) => ({
    body: {
      name: textOf(form, "name"),
      role,
      expires_in_days: Number(textOf(form, "expires_in_days")),
      ...(chosen === undefined ? {} : { scopes: [...chosen] }),
      ...(within === null ? {} : { projects: [...within] }),
      ...(form.has("approval") ? { approval_mode: true } : {}),
    },
  });
  return (
    <ActionDialog
      row="tokens.create"
      title="New token"
      submit="Create"
      input={input}
      secret={{ title: "Token created", of: (answer) => answer.token }}
    >
      <TextField name="name" label="Name" hint="Where it is used: laptop, CI, agent." required maxLength={100} />
      <div className="flex flex-wrap items-start gap-4">
        <div className="flex flex-col gap-1.5">
          <span className="text-sm font-medium">Role</span>
          <Choice label="Role" options={mayRoles} value={role} onChange={setRole} />
        </div>
        <NumberField name="expires_in_days" label="Days until it expires" min={1} max={365} defaultValue={90} />
      </div>
      <Checkbox name="approval" label="Approval mode: a person decides before anything is deleted or restored" />
      <Checkbox
        label="Only some scopes"
        checked={chosen !== undefined}
        onChange={(event) => setChosen(event.target.checked ? [] : undefined)}
      />
      {chosen !== undefined && <Several legend="Scopes" of={own} chosen={chosen} onChange={setChosen} />}
      <SomeProjects chosen={within} onChange={setWithin} />
    </ActionDialog>
  );
}

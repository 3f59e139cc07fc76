import { useState } from "react";
import { roles, scopes, type Role } from "../../../contract/access.ts";
import { useAction } from "../../data/api.ts";
import { useMe } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { Choice } from "../../ui/choice.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";
import { SecretOnce } from "../../ui/secret-once.tsx";

/** A new token with a part of one's own rights; its text is shown once. */
export function CreateToken({ onClose }: { readonly onClose: () => void }) {
  const me = useMe();
  const create = useAction("tokens.create");
  const [role, setRole] = useState<Role>("member");
  const [chosen, setChosen] = useState<readonly string[]>();
  const mayRoles = me.role === "owner" || me.platform_admin ? roles : (["member"] as const);
  const own = scopes.filter((scope) => me.token.scopes.includes(scope));
  if (create.data !== undefined) return <SecretOnce title="Token created" text={create.data.token} onClose={onClose} />;
  const submit = (form: FormData) =>
    create.mutate({
      body: {
        name: textOf(form, "name"),
        role,
        expires_in_days: Number(textOf(form, "days")),
        ...(chosen === undefined ? {} : { scopes: [...chosen] }),
        ...(form.has("approval") ? { approval_mode: true } : {}),
      },
    });
  return (
    <FormDialog
      title="New token"
      submit="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" hint="Where it is used: laptop, CI, agent." error={fieldProblem(create.error, "name")}>
        {(ids) => <Input {...ids} name="name" required autoFocus maxLength={100} />}
      </Field>
      <div className="flex flex-wrap items-end gap-4">
        <div className="flex flex-col gap-1.5">
          <span className="text-sm font-medium">Role</span>
          <Choice label="Role" options={mayRoles} value={role} onChange={setRole} />
        </div>
        <div className="w-32">
          <Field label="Days until it expires" error={fieldProblem(create.error, "expires_in_days")}>
            {(ids) => <Input {...ids} name="days" type="number" min={1} max={365} defaultValue={90} required />}
          </Field>
        </div>
      </div>
      <Checkbox name="approval" label="Approval mode: a person decides before anything is deleted or restored" />
      <Checkbox
        label="Only some scopes"
        checked={chosen !== undefined}
        onChange={(event) => setChosen(event.target.checked ? [] : undefined)}
      />
      {chosen !== undefined && (
        <fieldset className="grid grid-cols-2 gap-x-4 gap-y-1.5 rounded-md border border-line p-3 sm:grid-cols-3">
          <legend className="sr-only">Scopes</legend>
          {own.map((scope) => (
            <Checkbox
              key={scope}
              label={<span className="font-mono text-xs">{scope}</span>}
              checked={chosen.includes(scope)}
              onChange={(event) =>
                setChosen(event.target.checked ? [...chosen, scope] : chosen.filter((each) => each !== scope))
              }
            />
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}

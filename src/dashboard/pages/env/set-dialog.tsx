import { useState } from "react";
import { useCall } from "../../data/api.ts";
import { firstLine } from "../../data/format.ts";
import { textOf, Field, SelectField, TextArea, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Choice } from "../../ui/choice.tsx";

interface SetProps {
  readonly slug: string;
  /** Null to set a new variable. */
  readonly name: string | null;
}

/** Sets a variable to a new value, or to the one that it has in an earlier deployment. */
export function SetDialog({ slug, name }: SetProps) {
  const [source, setSource] = useState<Source>("new");
  return (
    <ActionDialog
      row="env.set"
      title={name === null ? "Set a variable" : `Replace ${name}`}
      submit="Save"
      input={(form) => ({
        params: { slug, key: name ?? textOf(form, "key").trim() },
        body:
          source === "new"
            ? { value: textOf(form, "value") }
            : { from_deployment: Number(textOf(form, "from_deployment")) },
      })}
    >
      {name === null ? (
        <TextField
          name="key"
          label="Key"
          hint="Letters, digits and underscores."
          required
          mono
          maxLength={128}
          autoComplete="off"
          placeholder="STRIPE_KEY"
        />
      ) : (
        <div>
          <Choice label="Value" options={sources} words={sourceWords} value={source} onChange={setSource} />
        </div>
      )}
      {source === "new" ? (
        <Field name="value" label="Value" hint="It is sealed when it is stored and shown nowhere afterwards.">
          {(field) => <TextArea {...field} rows={3} autoComplete="off" />}
        </Field>
      ) : (
        <FromDeployment slug={slug} />
      )}
    </ActionDialog>
  );
}

const sources = ["new", "deployment"] as const;
type Source = (typeof sources)[number];
const sourceWords = { new: "A new value", deployment: "As in a deployment" };

function FromDeployment({ slug }: { readonly slug: string }) {
  const deployments = useCall("deployments.list", { params: { slug } });
  const builds = useCall("builds.list", { params: { slug } });
  const messages = new Map(builds.data?.builds.map(({ id, message }) => [id, firstLine(message)]));
  return (
    <SelectField
      name="from_deployment"
      label="Deployment"
      hint="Its value is set again without being shown."
      options={(deployments.data?.deployments ?? []).map(({ number, build_id: build, trigger }) => [
        String(number),
        `#${number} · ${trigger} · ${messages.get(build) ?? ""}`,
      ])}
    />
  );
}

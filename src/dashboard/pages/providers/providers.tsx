import { Plus } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { Choice } from "../../ui/choice.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

type Provider = Answer<"providers.list">["providers"][number];

/** Lists the identity providers with which people sign in to the platform. */
export function Providers() {
  const providers = useCall("providers.list", {});
  return (
    <Section
      title="Sign-in"
      lead="Providers with which people sign in, besides their passkeys. An account still needs an invitation."
      actions={
        <DialogButton icon={<Plus size={15} />} row="providers.set" dialog={<AddProvider />}>
          Add a provider
        </DialogButton>
      }
    >
      <List
        of={providers}
        caption="Identity providers"
        rows={(data) => data.providers}
        keyOf={({ id }) => id}
        empty={<Empty title="No providers">People sign in with passkeys.</Empty>}
        columns={[
          { head: "Provider", cell: ({ name }) => <Plain>{name}</Plain> },
          { head: "Issuer", grow: true, cell: ({ issuer }) => <Mono>{issuer}</Mono> },
          { head: "Callback", wide: true, cell: ({ callback_url: url }) => <Mono>{url}</Mono> },
          timeColumn("Changed", (row: Provider) => row.updated_at),
          removal.column,
        ]}
      />
    </Section>
  );
}

const removal = createRemoval({
  row: "providers.delete",
  title: "Remove a provider",
  nameOf: ({ id }: Provider) => id,
  input: ({ id }) => ({ params: { id } }),
  warning: "Nobody signs in with it any more. A person without a passkey then needs an invitation; sessions go on.",
});

function AddProvider() {
  const [kind, setKind] = useState<Provider["kind"]>("oidc");
  const [id, setId] = useState("");
  const input = (form: FormData) => {
    const issuer = textOf(form, "issuer").trim();
    const given = { name: textOf(form, "name").trim(), client_id: textOf(form, "client_id").trim() };
    const body = { kind, ...given, client_secret: textOf(form, "client_secret"), ...(issuer !== "" && { issuer }) };
    return { params: { id: id.trim() }, body };
  };
  return (
    <ActionDialog row="providers.set" title="Add a provider" submit="Add" input={input}>
      <Choice
        label="Kind"
        options={["oidc", "github"]}
        words={{ oidc: "OpenID Connect", github: "GitHub" }}
        value={kind}
        onChange={setKind}
      />
      <TextField
        name="id"
        label="Short name"
        hint={`Register this callback at the provider: ${location.origin}/session/oidc/${id.trim() || "…"}/callback`}
        value={id}
        onChange={(event) => setId(event.target.value)}
        maxLength={40}
        mono
        required
      />
      <TextField name="name" label="Name" hint="On the button of the sign-in page." maxLength={100} required />
      <TextField
        name="issuer"
        label={kind === "oidc" ? "Issuer" : "Server (optional)"}
        placeholder={kind === "oidc" ? "https://id.example.com/realms/company" : "https://github.com"}
        type="url"
        mono
        required={kind === "oidc"}
      />
      <TextField name="client_id" label="Client id" autoComplete="off" mono required />
      <TextField name="client_secret" label="Client secret" type="password" autoComplete="new-password" required />
    </ActionDialog>
  );
}

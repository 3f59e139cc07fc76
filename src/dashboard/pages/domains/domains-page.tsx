import { Globe, Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useProject, useSlug } from "../../data/api.ts";
import { DialogButton } from "../../ui/button.tsx";
import { textOf, SelectField, TextField } from "../../ui/field.tsx";
import { Page, Empty, View } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DomainCard } from "./domain-card.tsx";
import type { Domain } from "./domain.ts";

export function DomainsPage() {
  const slug = useSlug();
  const domains = useCall("domains.list", { params: { slug } }, { pollMs: lookupsMs });
  return (
    <Page
      title="Domains"
      lead="Attach a hostname, create its record at your DNS provider, and it is served as soon as the record is seen."
      actions={
        <DialogButton look="primary" icon={<Plus size={15} />} row="domains.attach" dialog={<Attach slug={slug} />}>
          Attach a hostname
        </DialogButton>
      }
    >
      <View of={domains}>
        {({ domains: all }) =>
          all.length === 0 ? (
            <Empty
              icon={<Globe size={24} />}
              title="No hostname of your own yet"
              command={`berth domains add shop.example.com --project ${slug}`}
            >
              <Meanwhile />
            </Empty>
          ) : (
            <ul className="flex flex-col gap-4">
              {all.map((domain) => (
                <DomainCard
                  key={domain.id}
                  domain={domain}
                  target={all.find(({ hostname }) => hostname === domain.redirect_to)}
                  detach={domainRemoval(slug).button(domain)}
                />
              ))}
            </ul>
          )
        }
      </View>
    </Page>
  );
}

// The stream of changes reports a lookup only if it changes a hostname's state, so poll while records are missing.
const lookupsMs = (found: Answer<"domains.list"> | undefined) =>
  found?.domains.some(({ dns_status: status }) => status !== "ok") === true && 30_000;

/** Says where the project answers without a hostname of its own. */
function Meanwhile() {
  const { data: project } = useProject();
  if (project === undefined) return null;
  const address = <Mono className="wrap-anywhere">{project.url.replace(/^https?:\/\//, "")}</Mono>;
  if (project.active_deployment === null)
    return <>Nothing is deployed yet. Then the project also answers at {address}.</>;
  return <>The project answers at {address}, with or without one.</>;
}

export const domainRemoval = (slug: string) =>
  createRemoval({
    row: "domains.detach",
    title: "Detach a hostname",
    verb: "Detach",
    nameOf: ({ hostname }: Domain) => hostname,
    input: ({ hostname }) => ({ params: { slug, hostname } }),
    warning: "It stops being served at once. The project's other addresses stay.",
  });

export function Attach({ slug }: { readonly slug: string }) {
  const { data } = useCall("domains.list", { params: { slug } });
  const targets = data?.domains.filter((domain) => domain.redirect_to === null) ?? [];
  return (
    <ActionDialog
      row="domains.attach"
      title="Attach a hostname"
      submit="Attach"
      input={(form) => ({
        params: { slug },
        body: { hostname: textOf(form, "hostname").trim(), redirect_to: textOf(form, "redirect_to") || null },
      })}
    >
      <TextField
        name="hostname"
        label="Hostname"
        required
        mono
        autoComplete="off"
        autoCapitalize="none"
        inputMode="url"
        spellCheck={false}
        placeholder="shop.example.com"
      />
      {targets.length > 0 && (
        <SelectField
          name="redirect_to"
          label="Requests for it"
          options={[
            ["", "reach the application"],
            ...targets.map(({ hostname }) => [hostname, `are redirected to ${hostname}`] as const),
          ]}
        />
      )}
    </ActionDialog>
  );
}

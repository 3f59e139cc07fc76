import { Globe } from "lucide-react";
import { useState, type FormEvent } from "react";
import { useAction, useCall } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { useWhyNot } from "../../data/me.ts";
import { useSlug } from "../../data/project.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { fieldProblem, Problem } from "../../ui/problem.tsx";
import { Empty, View } from "../../ui/view.tsx";
import { DomainCard } from "./domain-card.tsx";

/** Hostnames of one's own, each with the steps until it is served. */
export function DomainsPage() {
  const slug = useSlug();
  const domains = useCall("domains.list", { params: { slug } }, { refetchInterval: 30_000 });
  const [detaching, setDetaching] = useState<string>();
  return (
    <Page
      title="Domains"
      lead="Attach a hostname, create its record at your DNS provider, and it is served as soon as the record is seen."
    >
      <Attach slug={slug} />
      <View of={domains}>
        {({ domains: all }) =>
          all.length === 0 ? (
            <Empty icon={<Globe size={24} />} title="No hostname of your own yet">
              The project answers at its default address meanwhile.
            </Empty>
          ) : (
            <ul className="flex flex-col gap-4">
              {all.map((domain) => (
                <DomainCard key={domain.id} domain={domain} onDetach={() => setDetaching(domain.hostname)} />
              ))}
            </ul>
          )
        }
      </View>
      {detaching !== undefined && <Detach slug={slug} hostname={detaching} onClose={() => setDetaching(undefined)} />}
    </Page>
  );
}

function Attach({ slug }: { readonly slug: string }) {
  const attach = useAction("domains.attach");
  const why = useWhyNot("domains.attach");
  const problem = fieldProblem(attach.error, "hostname");
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (attach.isPending || why !== undefined) return;
    attach.mutate(
      { params: { slug }, body: { hostname: textOf(new FormData(form), "hostname").trim() } },
      { onSuccess: () => form.reset() },
    );
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <div className="flex max-w-xl items-start gap-2">
        <div className="flex-1">
          <Field label="Hostname" error={problem}>
            {(ids) => (
              <Input {...ids} name="hostname" required mono autoComplete="off" placeholder="shop.example.com" />
            )}
          </Field>
        </div>
        <Button type="submit" look="primary" className="mt-6" busy={attach.isPending} why={why}>
          Attach
        </Button>
      </div>
      {attach.error !== null && problem === undefined && <Problem error={attach.error} />}
    </form>
  );
}

function Detach({
  slug,
  hostname,
  onClose,
}: {
  readonly slug: string;
  readonly hostname: string;
  readonly onClose: () => void;
}) {
  const detach = useAction("domains.detach");
  const why = useWhyNot("domains.detach");
  return (
    <ConfirmDialog
      title="Detach a hostname"
      submit="Detach"
      typed={hostname}
      why={why}
      busy={detach.isPending}
      error={detach.error}
      onClose={onClose}
      onConfirm={() => detach.mutate({ params: { slug, hostname } }, { onSuccess: onClose })}
    >
      <p className="text-sm text-muted">It stops being served at once. The project's other addresses stay.</p>
    </ConfirmDialog>
  );
}

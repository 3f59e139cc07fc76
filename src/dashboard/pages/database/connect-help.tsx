import { Command } from "../../ui/button.tsx";
import { Section } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";

/** How the application, a person and a program reach the database. No password is shown anywhere. */
export function ConnectHelp({ slug }: { readonly slug: string }) {
  const ways = [
    ["psql, as an owner", `berth db psql --project ${slug}`],
    ["A graphical tool on this machine, until Ctrl-C", `berth db tunnel --project ${slug} --port 5433`],
    ["A copy as a file", `berth db dump --project ${slug} > ${slug}.dump`],
  ] as const;
  return (
    <Section
      title="Connect"
      lead={
        <>
          The application connects with <Mono>DATABASE_URL</Mono>, which is set for it. From elsewhere, a tunnel makes a
          role with a password of its own that ends with it; neither is stored or shown.
        </>
      }
    >
      <dl className="grid gap-3 lg:grid-cols-3">
        {ways.map(([what, command]) => (
          <div key={what} className="min-w-0">
            <dt className="mb-1 text-xs text-faint">{what}</dt>
            <dd>
              <Command>{command}</Command>
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

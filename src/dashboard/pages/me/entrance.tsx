import { useEffect, type ReactNode } from "react";
import { Brand } from "../../ui/brand.tsx";

/** The layout of pages outside of a session: one column with one thing to do. */
export function Entrance({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Berth`;
  }, [title]);
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-[25rem] flex-col justify-center px-5 py-16 [&_[type=submit]]:w-full">
      <div className="mb-8">
        <Brand size={30} />
      </div>
      <h1 className="mb-5 text-xl font-semibold tracking-[-0.01em]">{title}</h1>
      {children}
    </main>
  );
}

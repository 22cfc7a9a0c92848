import DocentWidget from "@theme/DocentWidget";

export default function Root({ children }) {
  return (
    <>
      {children}
      <DocentWidget />
    </>
  );
}

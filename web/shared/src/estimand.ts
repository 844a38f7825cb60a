/** What a count of 1 is, in words: as `hazemap.privacy.statement_facts` says it in English. */

import { fill, type Language } from "./texts.js";

/** What a count of 1 is, and how much of it a person gives at most: null where that is 1 in all. */
export interface Estimand {
  readonly noun: string;
  readonly most: number | null;
  readonly places: number | null;
}

interface EstimandWords {
  readonly nouns: Readonly<Record<string, string>>;
  readonly each: string;
  readonly eachPlaces: string;
  readonly eachRecords: string;
}

const WORDS: Readonly<Record<Language, EstimandWords>> = {
  en: {
    nouns: { people: "people", rows: "rows", visits: "visits", records: "records" },
    each: "{noun} counted, at most {most} each",
    eachPlaces: "{noun} counted, at most {places} places each",
    eachRecords: "{noun} counted, at most {most} each in each of {places} places",
  },
  de: {
    nouns: { people: "Personen", rows: "Zeilen", visits: "Besuche", records: "Datensätze" },
    each: "gezählte {noun}, von jedem höchstens {most}",
    eachPlaces: "gezählte {noun}, jede an höchstens {places} Orten",
    eachRecords: "gezählte {noun}, von jedem höchstens {most} an jedem von {places} Orten",
  },
  fr: {
    nouns: { people: "personnes", rows: "lignes", visits: "visites", records: "enregistrements" },
    each: "{noun} comptés, {most} au plus par personne",
    eachPlaces: "{noun} comptés, en {places} lieux au plus par personne",
    eachRecords: "{noun} comptés, {most} au plus par personne dans chacun de {places} lieux",
  },
  es: {
    nouns: { people: "personas", rows: "filas", visits: "visitas", records: "registros" },
    each: "{noun} contados, {most} como máximo por persona",
    eachPlaces: "{noun} contados, en {places} lugares como máximo por persona",
    eachRecords: "{noun} contados, {most} como máximo por persona en cada uno de {places} lugares",
  },
};

/** What a count of 1 is; a word that is not known stays as it is. */
export function nounOf({ noun }: Estimand, language: Language): string {
  const { nouns } = WORDS[language];
  return Object.hasOwn(nouns, noun) ? nouns[noun]! : noun;
}

/** The same, and how much of it each person gives at most. */
export function countedOf(estimand: Estimand, language: Language, number: (value: number) => string): string {
  const { most, places } = estimand;
  const noun = nounOf(estimand, language);
  if (most === null && places === null) return noun;
  const { each, eachPlaces, eachRecords } = WORDS[language];
  const text = places === null ? each : most === null ? eachPlaces : eachRecords;
  return fill(text, { noun, most: number(most ?? 0), places: number(places ?? 0) });
}

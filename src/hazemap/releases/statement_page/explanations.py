"""What the page of a statement explains, in four languages. The statement's own words are not translated."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanations:
    """The words of a page in one language; `names` and `why` have a text for every part of a statement.

    `void` is what a test promises. `pure` and `approximate` are about `{times}`, which is a number or `nothing`;
    `point` stands in decimal numbers.
    """

    title: str
    about: str
    meaning: str
    void: str
    pure: str
    approximate: str
    nothing: str
    point: str
    not_told: str
    whole: str
    check: str
    how: str
    file: str
    names: dict[str, str]
    why: dict[str, str]


ENGLISH = Explanations(
    title="Privacy statement",
    about=(
        "Numbers about people were published with noise, so that they say little about any one person. This page "
        "is the statement that the published file carries. It explains each part. The explanations are no part of "
        "the promise."
    ),
    meaning="What is promised",
    void="This release is a test: its noise repeats itself, so it promises nothing to anybody.",
    pure=(
        "Whatever anybody does with the published numbers, and whatever else they know: what the data holds of "
        "any one of those who are protected (see “Protected” and “Neighbours”) makes no conclusion more than "
        "{times} times as likely, nor that many times less likely."
    ),
    approximate=(
        "Whatever anybody does with the published numbers, and whatever else they know: except with a probability "
        "of {delta}, what the data holds of any one of those who are protected (see “Protected” and “Neighbours”) "
        "makes no conclusion more than {times} times as likely, nor that many times less likely."
    ),
    nothing="a thousand (which promises next to nothing)",
    point=".",
    not_told=(
        "It is no promise that nothing can be learned about groups: what holds of many people is what such "
        "numbers are for. It does not say what else was published of the same people; the publisher's ledger "
        "does. Nor does it judge whether the data was collected lawfully."
    ),
    whole="The statement, part by part",
    check="How to check it",
    how=(
        "Anybody who has the file can make its numbers again from the stored answers and compare. That the "
        "answers are honest, one has to trust those who are named under “Assumed”."
    ),
    file="File",
    names={
        "Data set": "Data set",
        "Protected": "Protected",
        "Neighbours": "Neighbours",
        "Budget": "Budget",
        "Bounding": "Bounding",
        "Noise": "Noise",
        "Assumed": "Assumed",
        "Public": "Public",
        "Charged": "Charged",
        "Method": "Method",
        "Made": "Made",
    },
    why={
        "Data set": "The name under which the publisher keeps account of what was published.",
        "Protected": "Is it a person? Where it is a row, somebody with ten rows is protected ten times less.",
        "Neighbours": (
            "Which two sets of data nobody can tell apart well. “Added or removed” hides even whether a person is "
            "in it."
        ),
        "Budget": "How much is given away at most, of everything in this file together. Smaller is more private.",
        "Bounding": "How much of one person counts. What is over it was left out before anything was counted.",
        "Noise": "By which law chance was added, and by whom.",
        "Assumed": (
            "What has to be believed, because no file can show it. The promise holds only as far as this does."
        ),
        "Public": "What was declared, or chosen without looking at the data. It is not protected.",
        "Charged": "What was learned from the data. All of it was paid for out of the budget.",
        "Method": "How the numbers were made. It changes how exact they are, not what is promised.",
        "Made": "When (in UTC), and by which version of the program.",
    },
)

GERMAN = Explanations(
    title="Erklärung zum Schutz der Menschen in dieser Veröffentlichung",
    about=(
        "Zahlen über Menschen wurden mit Rauschen veröffentlicht, damit sie über jede einzelne Person wenig "
        "sagen. Diese Seite ist die Erklärung, die in der veröffentlichten Datei steht, und erläutert jeden Teil. "
        "Die Erläuterungen sind nicht Teil der Zusage. Der Wortlaut der Erklärung ist englisch und steht hier "
        "unverändert."
    ),
    meaning="Was zugesagt wird",
    void="Diese Veröffentlichung ist ein Test: Ihr Rauschen wiederholt sich, also sagt sie niemandem etwas zu.",
    pure=(
        "Was immer jemand mit den veröffentlichten Zahlen tut und was immer er sonst weiß: Was die Daten über "
        "einen einzelnen Geschützten enthalten (siehe „Geschützt“ und „Nachbarn“), macht keinen Schluss mehr als "
        "{times}-mal so wahrscheinlich, und keinen um mehr als dieses Vielfache unwahrscheinlicher."
    ),
    approximate=(
        "Was immer jemand mit den veröffentlichten Zahlen tut und was immer er sonst weiß: Außer mit einer "
        "Wahrscheinlichkeit von {delta} macht das, was die Daten über einen einzelnen Geschützten enthalten "
        "(siehe „Geschützt“ und „Nachbarn“), keinen Schluss mehr als {times}-mal so wahrscheinlich, und keinen um "
        "mehr als dieses Vielfache unwahrscheinlicher."
    ),
    nothing="tausend (was so gut wie nichts zusagt)",
    point=",",
    not_told=(
        "Es wird nicht zugesagt, dass man über Gruppen nichts erfährt: Was für viele gilt, sollen solche Zahlen "
        "zeigen. Die Erklärung sagt nicht, was sonst über dieselben Menschen veröffentlicht wurde; das steht im "
        "Kontobuch (ledger) des Herausgebers. Sie sagt auch nicht, ob die Daten rechtmäßig erhoben wurden."
    ),
    whole="Die Erklärung, Teil für Teil",
    check="Wie man sie prüft",
    how=(
        "Wer die Datei hat, kann ihre Zahlen aus den gespeicherten Antworten neu berechnen und vergleichen. Dass "
        "die Antworten ehrlich sind, muss man denen glauben, die unter „Vorausgesetzt“ stehen."
    ),
    file="Datei",
    names={
        "Data set": "Datenbestand",
        "Protected": "Geschützt",
        "Neighbours": "Nachbarn",
        "Budget": "Budget",
        "Bounding": "Begrenzung",
        "Noise": "Rauschen",
        "Assumed": "Vorausgesetzt",
        "Public": "Öffentlich",
        "Charged": "Bezahlt",
        "Method": "Verfahren",
        "Made": "Erstellt",
    },
    why={
        "Data set": "Der Name, unter dem der Herausgeber Buch darüber führt, was veröffentlicht wurde.",
        "Protected": (
            "Ist es eine Person? Wo es eine Zeile ist, ist jemand mit zehn Zeilen zehnmal weniger geschützt."
        ),
        "Neighbours": (
            "Welche zwei Datenbestände niemand gut unterscheiden kann. „Added or removed“ verbirgt sogar, ob eine "
            "Person darin ist."
        ),
        "Budget": "Wie viel alles in dieser Datei zusammen höchstens preisgibt. Weniger ist privater.",
        "Bounding": "Wie viel von einer Person zählt. Was darüber ist, wurde weggelassen, bevor gezählt wurde.",
        "Noise": "Nach welchem Gesetz Zufall hinzugefügt wurde, und von wem.",
        "Assumed": "Was man glauben muss, weil keine Datei es zeigen kann. Die Zusage gilt nur so weit wie dies.",
        "Public": "Was angegeben oder gewählt wurde, ohne in die Daten zu sehen. Es ist nicht geschützt.",
        "Charged": "Was aus den Daten gelernt wurde. Alles davon wurde aus dem Budget bezahlt.",
        "Method": "Wie die Zahlen gemacht wurden. Es ändert, wie genau sie sind, nicht, was zugesagt ist.",
        "Made": "Wann (in UTC), und von welcher Version des Programms.",
    },
)

FRENCH = Explanations(
    title="Déclaration sur la protection des personnes dans cette publication",
    about=(
        "Des nombres sur des personnes ont été publiés avec du bruit, afin qu'ils disent peu de chacune. Cette "
        "page est la déclaration contenue dans le fichier publié, et en explique chaque partie. Les explications "
        "ne font pas partie de la promesse. Le texte de la déclaration est en anglais et figure ici sans "
        "changement."
    ),
    meaning="Ce qui est promis",
    void="Cette publication est un essai : son bruit se répète, elle ne promet donc rien à personne.",
    pure=(
        "Quoi que l'on fasse des nombres publiés, et quoi que l'on sache par ailleurs : ce que les données "
        "contiennent d'un seul de ceux qui sont protégés (voir « Protégé » et « Voisins ») ne rend aucune "
        "conclusion plus de {times} fois plus probable, ni autant de fois moins probable."
    ),
    approximate=(
        "Quoi que l'on fasse des nombres publiés, et quoi que l'on sache par ailleurs : sauf avec une probabilité "
        "de {delta}, ce que les données contiennent d'un seul de ceux qui sont protégés (voir « Protégé » et « "
        "Voisins ») ne rend aucune conclusion plus de {times} fois plus probable, ni autant de fois moins "
        "probable."
    ),
    nothing="mille (ce qui ne promet presque rien)",
    point=",",
    not_told=(
        "Il n'est pas promis que l'on n'apprenne rien des groupes : ce qui vaut pour beaucoup est ce que de tels "
        "nombres doivent montrer. La déclaration ne dit pas ce qui a été publié d'autre sur les mêmes personnes ; "
        "le registre (ledger) de l'éditeur le dit. Elle ne dit pas non plus si les données ont été recueillies "
        "légalement."
    ),
    whole="La déclaration, partie par partie",
    check="Comment la vérifier",
    how=(
        "Quiconque a le fichier peut recalculer ses nombres à partir des réponses enregistrées, et comparer. Que "
        "les réponses sont honnêtes, il faut le croire de ceux qui sont nommés sous « Supposé »."
    ),
    file="Fichier",
    names={
        "Data set": "Données",
        "Protected": "Protégé",
        "Neighbours": "Voisins",
        "Budget": "Budget",
        "Bounding": "Limite",
        "Noise": "Bruit",
        "Assumed": "Supposé",
        "Public": "Public",
        "Charged": "Payé",
        "Method": "Méthode",
        "Made": "Fait",
    },
    why={
        "Data set": "Le nom sous lequel l'éditeur tient le compte de ce qui a été publié.",
        "Protected": "Est-ce une personne ? Si c'est une ligne, qui en a dix est dix fois moins protégé.",
        "Neighbours": (
            "Quels deux jeux de données personne ne distingue bien. « Added or removed » cache même si une "
            "personne y est."
        ),
        "Budget": "Ce que tout le fichier révèle au plus. Moins, c'est plus privé.",
        "Bounding": "Combien compte d'une personne. Ce qui dépasse a été laissé de côté avant de compter.",
        "Noise": "Selon quelle loi du hasard a été ajouté, et par qui.",
        "Assumed": (
            "Ce qu'il faut croire, car aucun fichier ne peut le montrer. La promesse ne vaut que dans cette mesure."
        ),
        "Public": "Ce qui a été déclaré, ou choisi sans regarder les données. Cela n'est pas protégé.",
        "Charged": "Ce qui a été appris des données. Tout a été payé sur le budget.",
        "Method": "Comment les nombres ont été faits. Cela change leur exactitude, non la promesse.",
        "Made": "Quand (en UTC), et par quelle version du programme.",
    },
)

SPANISH = Explanations(
    title="Declaración sobre la protección de las personas en esta publicación",
    about=(
        "Se publicaron números sobre personas con ruido, para que digan poco de cada una. Esta página es la "
        "declaración que lleva el archivo publicado, y explica cada parte. Las explicaciones no son parte de la "
        "promesa. El texto de la declaración está en inglés y aparece aquí sin cambios."
    ),
    meaning="Lo que se promete",
    void="Esta publicación es una prueba: su ruido se repite, así que no promete nada a nadie.",
    pure=(
        "Haga lo que haga alguien con los números publicados, y sepa lo que sepa además: lo que los datos "
        "contienen de uno solo de los protegidos (véanse «Protegido» y «Vecinos») no hace ninguna conclusión más "
        "de {times} veces más probable, ni tantas veces menos probable."
    ),
    approximate=(
        "Haga lo que haga alguien con los números publicados, y sepa lo que sepa además: salvo con una "
        "probabilidad de {delta}, lo que los datos contienen de uno solo de los protegidos (véanse «Protegido» y "
        "«Vecinos») no hace ninguna conclusión más de {times} veces más probable, ni tantas veces menos probable."
    ),
    nothing="mil (lo que no promete casi nada)",
    point=",",
    not_told=(
        "No se promete que no se aprenda nada de los grupos: lo que vale para muchos es lo que tales números "
        "deben mostrar. La declaración no dice qué más se publicó de las mismas personas; lo dice el registro "
        "(ledger) de quien publica. Tampoco dice si los datos se obtuvieron legalmente."
    ),
    whole="La declaración, parte por parte",
    check="Cómo comprobarla",
    how=(
        "Quien tiene el archivo puede calcular de nuevo sus números a partir de las respuestas guardadas, y "
        "comparar. Que las respuestas son honestas hay que creerlo de quienes se nombran en «Supuesto»."
    ),
    file="Archivo",
    names={
        "Data set": "Datos",
        "Protected": "Protegido",
        "Neighbours": "Vecinos",
        "Budget": "Presupuesto",
        "Bounding": "Límite",
        "Noise": "Ruido",
        "Assumed": "Supuesto",
        "Public": "Público",
        "Charged": "Pagado",
        "Method": "Método",
        "Made": "Hecho",
    },
    why={
        "Data set": "El nombre con el que quien publica lleva la cuenta de lo publicado.",
        "Protected": "¿Es una persona? Si es una fila, quien tiene diez está diez veces menos protegido.",
        "Neighbours": (
            "Qué dos conjuntos de datos nadie distingue bien. «Added or removed» oculta incluso si una persona "
            "está en ellos."
        ),
        "Budget": "Cuánto revela como mucho todo este archivo. Menos es más privado.",
        "Bounding": "Cuánto de una persona cuenta. Lo que pasa de ahí se dejó fuera antes de contar.",
        "Noise": "Según qué ley se añadió azar, y quién lo hizo.",
        "Assumed": "Lo que hay que creer, porque ningún archivo puede mostrarlo. La promesa vale solo en esa medida.",
        "Public": "Lo que se declaró, o se eligió sin mirar los datos. No está protegido.",
        "Charged": "Lo que se aprendió de los datos. Todo se pagó del presupuesto.",
        "Method": "Cómo se hicieron los números. Cambia su exactitud, no la promesa.",
        "Made": "Cuándo (en UTC), y con qué versión del programa.",
    },
)

LANGUAGES = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}

//! Texts that people type, or that somebody types to break something: one table for all ways by which texts come in.

#![allow(dead_code)] // Every test binary uses its own part.

/// A sentence in a script, and the tokens that the word-editing agent reads, joined by blanks.
pub struct Written {
    pub script: &'static str,
    pub text: &'static str,
    pub tokens: &'static str,
}

const fn written(script: &'static str, text: &'static str, tokens: &'static str) -> Written {
    Written { script, text, tokens }
}

/// Sentences in many scripts. Javanese, Yi and Vai are written without blanks and have no word bounds in UAX 29: what stands
/// between two blanks is one token, which is stored and exported as it is, and learnt when it is said again.
pub const SCRIPTS: &[Written] = &[
    written(
        "Latin with diacritics",
        "Füge nach jedem Vokal ein „ŷ“ ein, größer als ß",
        "füge nach jedem vokal ein [ ŷ ] ein , größer als [ ß ]",
    ),
    written("Vietnamese", "Thay mỗi chữ thường bằng nguyên", "thay mỗi chữ thường bằng nguyên"),
    written("Turkish", "BÜTÜN ünlüleri değiştir", "bütün ünlüleri değiştir"),
    written("Cyrillic", "ЗАМЕНИТЕ каждую букву и добавьте я", "замените каждую букву и добавьте я"),
    written("Greek", "Αντικατέστησε κάθε φωνήεν με το ο στο τέλος", "αντικατέστησε κάθε φωνήεν με το ο στο τέλος"),
    written("Coptic", "ⲡⲓⲣⲱⲙⲓ ⲛⲓⲃⲉⲛ", "ⲡⲓⲣⲱⲙⲓ ⲛⲓⲃⲉⲛ"),
    written("Arabic", "استبدل كل حرف بآخر، ثم أضف حرفًا", "استبدل كل حرف بآخر ثم أضف حرفًا"),
    written("Persian with non-joiners", "حرف‌ها را عوض می‌کند؟", "حرفها را عوض میکند"),
    written("Urdu", "ہر حرف کو بدل دو۔", "ہر حرف کو بدل دو"),
    written("Hebrew", "החלף כל אות בצה״ל", "החלף כל אות בצה״ל"),
    written("Syriac", "ܟܠ ܐܬܘܬܐ", "ܟܠ ܐܬܘܬܐ"),
    written("Thaana", "ކޮންމެ އަކުރެއް", "ކޮންމެ އަކުރެއް"),
    written("Devanagari", "हर स्वर के बाद एक अक्षर जोड़ें।", "हर स्वर के बाद एक अक्षर जोड़ें"),
    written("Bengali", "প্রতিটি স্বরবর্ণের পরে একটি অক্ষর যোগ করো।", "প্রতিটি স্বরবর্ণের পরে একটি অক্ষর যোগ করো"),
    written("Gurmukhi", "ਹਰ ਅੱਖਰ ਬਦਲੋ", "ਹਰ ਅੱਖਰ ਬਦਲੋ"),
    written("Gujarati", "દરેક સ્વરને બદલો", "દરેક સ્વરને બદલો"),
    written("Odia", "ପ୍ରତ୍ୟେକ ଅକ୍ଷର ବଦଳାନ୍ତୁ", "ପ୍ରତ୍ୟେକ ଅକ୍ଷର ବଦଳାନ୍ତୁ"),
    written("Tamil", "ஒவ்வொரு உயிரெழுத்தையும் மாற்று", "ஒவ்வொரு உயிரெழுத்தையும் மாற்று"),
    written("Telugu", "ప్రతి అచ్చును మార్చండి", "ప్రతి అచ్చును మార్చండి"),
    written("Kannada", "ಪ್ರತಿ ಸ್ವರವನ್ನು ಬದಲಿಸಿ", "ಪ್ರತಿ ಸ್ವರವನ್ನು ಬದಲಿಸಿ"),
    written("Malayalam", "എല്ലാ സ്വരങ്ങളും മാറ്റുക", "എല്ലാ സ്വരങ്ങളും മാറ്റുക"),
    written("Sinhala with joiners", "සෑම ශ්\u{200d}රී අකුරක්ම", "සෑම ශ්රී අකුරක්ම"),
    written("Thai", "แทนที่สระทุกตัวด้วย n", "แ ท น ที่ ส ร ะ ทุ ก ตั ว ด้ ว ย [ n ]"),
    written("Lao", "ປ່ຽນ ທຸກ ໂຕ", "ປ່ ຽ ນ ທຸ ກ ໂ ຕ"),
    written("Khmer with spaces of no width", "ប្តូរ\u{200b}ស្រៈ", "ប្ តូ រ ស្ រៈ"),
    written("Myanmar", "သရတိုင်းကို ပြောင်းပါ။", "သ ရ တို င်း ကို ပြော င်း ပါ"),
    written("Tibetan", "ཡི་གེ་རེ་རེ་བརྗེ།", "ཡི གེ རེ རེ བརྗེ"),
    written("Georgian", "შეცვალე ყველა ხმოვანი", "შეცვალე ყველა ხმოვანი"),
    written("Armenian", "Փոխիր ամեն ձայնավոր։", "փոխիր ամեն ձայնավոր"),
    written("Ethiopic", "እያንዳንዱን፡ፊደል፡ቀይር።", "እያንዳንዱን ፊደል ቀይር"),
    written("Cherokee", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ꮳꮃꭹ ꭶꮼꮒꭿꮝꮧ"),
    written("Hangul", "모든 모음을 바꾸세요", "모든 모음을 바꾸세요"),
    written(
        "Hangul in single letters",
        "\u{1106}\u{1169}\u{1103}\u{1173}\u{11ab} \u{1106}\u{1169}\u{110b}\u{1173}\u{11b7}",
        "모든 모음",
    ),
    written("Hiragana", "すべての もじ", "す べ て の も じ"),
    written("Katakana", "スベテノ モジヲ カエル", "スベテノ モジヲ カエル"),
    written("Katakana in half width", "ｽﾍﾞﾃﾉ ﾓｼﾞｦ ｶｴﾙ", "スベテノ モジヲ カエル"),
    written("Japanese", "母音を「x」に変える", "母 音 を [ x ] に 変 え る"),
    written("Simplified Han", "把每个n换成c。", "把 每 个 [ n ] 换 成 [ c ] 。"),
    written("Traditional Han", "將每個「a」換成ｅ，再加ing", "將 每 個 [ a ] 換 成 [ e ] , 再 加 [ i n g ]"),
    written("Bopomofo", "ㄅㄆㄇ ㄈ", "ㄅㄆㄇ ㄈ"),
    written("Yi", "ꆈꌠꉙ ꁱꂷ", "ꆈꌠꉙ ꁱꂷ"),
    written("Mongolian", "ᠮᠣᠩᠭᠣᠯ᠂ ᠬᠡᠯᠡ", "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ"),
    written("N'Ko", "ߒߞߏ ߞߊ߲", "ߒߞߏ ߞߊ߲"),
    written("Adlam", "𞤀𞤣𞤤𞤢𞤥 𞤆𞤵𞤤𞤢𞤪", "𞤢𞤣𞤤𞤢𞤥 𞤨𞤵𞤤𞤢𞤪"),
    written("Tifinagh", "ⵜⴰⵎⴰⵣⵉⵖⵜ ⵜⵓⵜⵍⴰⵢⵜ", "ⵜⴰⵎⴰⵣⵉⵖⵜ ⵜⵓⵜⵍⴰⵢⵜ"),
    written("Vai", "ꕙꔤ ꔺꘋ", "ꕙꔤ ꔺꘋ"),
    written("Deseret", "𐐔𐐯𐑅𐐨𐑉𐐯𐐻", "𐐼𐐯𐑅𐐨𐑉𐐯𐐻"),
    written("Ol Chiki", "ᱥᱟᱱᱛᱟᱲᱤ ᱪᱤᱠᱤ", "ᱥᱟᱱᱛᱟᱲᱤ ᱪᱤᱠᱤ"),
    written("Canadian syllabics", "ᐃᓄᒃᑎᑐᑦ ᐊᓪᓚᐅᓯᖅ", "ᐃᓄᒃᑎᑐᑦ ᐊᓪᓚᐅᓯᖅ"),
    written("Javanese", "ꦲꦏ꧀ꦱꦫꦗꦮ", "ꦲꦏ꧀ꦱꦫꦗꦮ"),
    written("composed accents", "remplacé après è", "remplacé après [ è ]"),
    written("accents behind their letters", "remplace\u{301} apre\u{300}s e\u{300}", "remplacé après [ è ]"),
    written("overridden direction", "replace \u{202e}n with\u{202c} c", "replace [ n ] with [ c ]"),
    written("isolates and marks of direction", "\u{2067}\u{200f}שלום\u{2069} wi\u{200e}th", "שלום with"),
    written("a byte-order mark", "\u{feff}replace n", "replace [ n ]"),
    written("noncharacters", "\u{fdd0}word\u{fffe}\u{ffff} \u{10ffff}x", "\u{fdd0}word \u{10ffff}x"),
    written("private use", "\u{e000}\u{f8ff} word", "\u{e000}\u{f8ff} word"),
    written("emoji with joiners", "👩🏽\u{200d}🚀 👨\u{200d}👩\u{200d}👧\u{200d}👦 moves", "👩🏽🚀 👨👩👧👦 moves"),
    written("flags", "🇩🇪 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} wave", "🇩🇪 🏴 wave"),
    written("variation selectors", "❤\u{fe0f} 葛\u{e0100}", "❤ 葛"),
    written("separators of lines", "one\u{2028}two\u{2029}three\u{85}four", "one two three four"),
    written("marks of other widths", "ｎ（ｃ）！", "[ n ] [ c ] !"),
];

/// The fate of a text where people describe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is stored letter for letter.
    Stored,
    /// It has no letter, mark or sign.
    Blank,
    /// It has more characters than fit.
    TooLong,
    /// It is larger than a program's request may be.
    TooLarge,
}

/// A text that was made to break something.
pub struct Poison {
    pub name: &'static str,
    pub text: String,
    pub fate: Fate,
}

fn poison(name: &'static str, text: impl Into<String>, fate: Fate) -> Poison {
    Poison { name, text: text.into(), fate }
}

/// Texts that were made to break something.
pub fn poisons() -> Vec<Poison> {
    use Fate::{Blank, Stored, TooLarge, TooLong};
    let zalgo: String =
        "replace n with c".chars().flat_map(|c| [c, '\u{351}', '\u{30d}', '\u{334}', '\u{489}']).collect();
    let controls: String = (1u8..32).filter(|c| *c != b'\r').map(char::from).chain(['\u{7f}', '\u{9b}']).collect();
    let mut all = vec![
        poison("100 kB of words", "replace n with c ".repeat(6_000), TooLarge),
        poison("one word too many times", "again ".repeat(5_000), TooLong),
        poison("one word as often as fits", "n ".repeat(2_500), Stored),
        poison("one long word", "n".repeat(5_000), Stored),
        poison("a letter too long", "n".repeat(5_001), TooLong),
        poison("astral letters as many as fit", "\u{1d4b3}".repeat(5_000), Stored),
        poison("a letter under a tower of accents", format!("a{}", "\u{300}".repeat(4_000)), Stored),
        poison("accents on every letter", zalgo, Stored),
        poison("accents alone", "\u{301}\u{302}\u{303}", Stored),
        poison("control characters", format!("a{controls}z"), Stored),
        poison("zero bytes", "null\0 inside\0", Stored),
        poison("a zero byte alone", "\0", Stored),
        poison("only emoji", "😀🎉👩\u{200d}🚀🏳\u{fe0f}\u{200d}🌈", Stored),
        poison("spaces without a width", "\u{200b}\u{200b}\u{feff}", Stored),
        poison("a joiner alone", "\u{200d}", Stored),
        poison("blanks alone", " \u{a0}\u{3000}\t\n\u{2003}", Blank),
        poison("marks alone", "...!?[]()''\"\"--->", Stored),
        poison("overridden direction", "\u{202e}c htiw n ecalper\u{202c} \u{2067}x", Stored),
        poison("directions without an end", "\u{202e}".repeat(200), Stored),
        poison("SQL", "'; DROP TABLE answers; --", Stored),
        poison("SQL with a comment", "x') OR 1=1 /* \u{0} */; ATTACH DATABASE '/tmp/x' AS y;", Stored),
        poison("a script", "</textarea></q><script>document.title='taken'</script>", Stored),
        poison("a picture", "\"'><img src=x onerror=\"document.title='taken'\">", Stored),
        poison("an entity", "&lt;b&gt; &#0; &amp;amp; &NotAnEntity;", Stored),
        poison("a comment of HTML", "<!-- --!><![CDATA[ ]]>", Stored),
        poison("an address that is a script", "[click](javascript:alert(1)) javascript:alert(1)", Stored),
        poison("templates", "{{ 7*7 }} {% include \"/etc/passwd\" %} ${7*7} #{7*7} <%= 7*7 %> {{{x}}}", Stored),
        poison("a lookup", "${jndi:ldap://127.0.0.1/a}", Stored),
        poison("a shell", "$(touch /tmp/taken) `touch /tmp/taken`; touch /tmp/taken | cat", Stored),
        poison("an end of a header", "x\n\nSet-Cookie: a=b\nLocation: //evil.example/", Stored),
        poison("an event of a stream", "x\n\nevent: status\ndata: {}\n\n", Stored),
        poison("a formula", "=HYPERLINK(\"http://evil.example/\",\"here\")", Stored),
        poison("a formula that starts a program", "@SUM(1+1)*cmd|' /C calc'!A0", Stored),
        poison("a formula after a tab", "\t=1+1", Stored),
        poison("a formula after a line", "\n-1+1", Stored),
        poison("a formula after an apostrophe", "'+1", Stored),
        poison("JSON", "{\"text\": null}, [1, 2", Stored),
        poison("CSV", "\"a\",\"b\"\n\"\"\"\",,;\t", Stored),
        poison("a path", "../../../../etc/passwd\0.jsonl", Stored),
        poison("symbols of the vocabulary", "<PAD> <UNK> < > [ ] <PAD>", Stored),
        poison("formats", "%s%s%s%n %d {} {0} \\u0000 \\x00 \\", Stored),
        poison("numbers that are none", "NaN inf -inf 1e999 null undefined", Stored),
        poison("nests", "[".repeat(2_000) + &"]".repeat(2_000), Stored),
        poison("quotes", "'\"`´‘’“”„«»*_".repeat(200), Stored),
        poison("an expression that never ends", "((a*)*)*b (a|a)*$ .*.*.*.*=", Stored),
        poison("a replacement character", "\u{fffd}\u{fffc}", Stored),
        poison("the last character there is", "\u{10ffff}", Stored),
        poison("a Turkish i and others that grow in lower case", "İİİ ẞ ŉ ǰ ΐ ΑΣ ﬃ", Stored),
        poison("letters of the mathematics", "𝓻𝓮𝓹𝓵𝓪𝓬𝓮 𝐧 𝕨𝕚𝕥𝕙 𝖈", Stored),
    ];
    all.extend(SCRIPTS.iter().map(|written| poison(written.script, written.text, Stored)));
    all
}

/// A text as the templates escape it.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&#38;"),
            '<' => html.push_str("&#60;"),
            '>' => html.push_str("&#62;"),
            '"' => html.push_str("&#34;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

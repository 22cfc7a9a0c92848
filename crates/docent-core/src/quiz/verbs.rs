//! English verbs as documentation uses them: at the start of steps, and after the thing that does them.
//!
//! Invariant: a word is only taken for a verb if it is listed; words that are more often nouns are left out.

/// Base forms, in alphabetical order.
const VERBS: &str = "accept access activate adapt add adjust allocate allow answer append apply ask assign attach \
    avoid balance begin belong bind block borrow break bring build bundle cache calculate call cancel capture carry \
    catch change check choose clean clear click clone close coat collect combine compare compile complete compute \
    configure confirm connect consist contain continue control convert copy correct count cover create decide declare \
    decode define delete deliver deny depend deploy describe destroy detach detect determine develop disable discard \
    display divide download drain draw drop edit emit enable encode encourage end enforce ensure enter establish estimate \
    evaluate examine exclude execute exist exit expand explain export expose extend extract fail fetch fill filter \
    find finish fit fix follow force form format free generate get give go grab grow guarantee handle help hide hold \
    identify ignore implement import improve include increase indicate inherit initialize insert inspect install \
    integrate interact introduce invoke join jump keep launch lead leave let lie limit list listen load locate log \
    look make manage map mark match mean measure merge minimize modify monitor mount move navigate observe obtain \
    occupy offer open optimize organize output overwrite own pair parse pass perform pick place play plot point \
    pop prefer prepare prevent print process produce project provide publish pull push put raise randomise randomize \
    reach read rebuild receive recognise recognize record reduce refer reject release reload remove rename render \
    repeat replace report represent request require reset resolve respond restart restore restrict retrieve return \
    revert rotate run save say scale scan search see select send separate serve set share show simplify simulate skip \
    slow smooth solve sort specify split spread start stay stop store stream strip submit subscribe subtract \
    suggest supply support switch take tell terminate test throw tighten toggle track train transform translate trigger try \
    turn type understand uninstall unlock unmount update upgrade upload use validate verify visit wait walk warn watch \
    wrap write yield";

/// Whether a word is the base form of a verb: "open" of "Open the file".
pub(super) fn is_base(word: &str) -> bool {
    VERBS.split(' ').any(|verb| verb == word)
}

/// Whether a word is a verb after a singular subject: "opens", "copies", "has".
pub(super) fn is_third_person(word: &str) -> bool {
    let Some(stem) = word.strip_suffix('s') else { return false };
    is_base(stem)
        || stem.strip_suffix('e').is_some_and(is_base)
        || stem.strip_suffix("ie").is_some_and(|stem| is_base(&format!("{stem}y")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_person_and_the_base_form_of_verbs_are_recognized() {
        for (word, base) in [("opens", "open"), ("copies", "copy"), ("passes", "pass"), ("uses", "use")] {
            assert!(is_third_person(word) && is_base(base), "{word}");
        }
        assert!(!is_third_person("is") && !is_third_person("files") && !is_base("node"));
    }
}

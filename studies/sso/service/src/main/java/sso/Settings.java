package sso;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What a study may change: SSO_COST, SSO_SECTION and so on in the environment.
 *
 * @param cost what authorize, ban and websites pay beside their work
 * @param section CPU time that each of them spends in the section, where there is one
 * @param timeout after which a request that still waits for its turn in the section is given up; zero: never
 * @param shortcut whether a ban of somebody who is banned already is answered at once
 * @param most requests at once, above which one is refused at once; zero: as many as there are threads
 */
@ConfigurationProperties("sso")
record Settings(
        @DefaultValue("none") Cost cost,
        @DefaultValue("5ms") Duration section,
        @DefaultValue("0ms") Duration timeout,
        @DefaultValue("false") boolean shortcut,
        @DefaultValue("0") int most) {

    /** Candidates for a cost that the published figures show and do not explain. */
    enum Cost {
        /** Only the work that the endpoint is there for. */
        NONE,
        /** A section of fixed CPU time that one request at a time goes through. */
        SERIALISED,
        /** Names and addresses are compared without regard to case, which no index serves. */
        SCAN
    }
}

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Proves a custody chain: the seal of a link is the digest of the seal before it and of the link. */
final class CustodyProof {
    private static final byte[] GENESIS = new byte[32];
    private static final int OPEN_LINKS = 64;

    private final boolean resumes;
    private final Map<String, byte[]> closed = new ConcurrentHashMap<>();

    CustodyProof(boolean resumes) {
        this.resumes = resumes;
    }

    String sealOf(CustodyChain chain) {
        byte[] seal = resumes ? resume(chain) : fromFirst(chain.links);
        return HexFormat.of().formatHex(seal);
    }

    private byte[] fromFirst(List<byte[]> links) {
        return replay(links, 0, GENESIS);
    }

    private byte[] resume(CustodyChain chain) {
        int open = chain.links.size() - OPEN_LINKS;
        byte[] at = closed.computeIfAbsent(chain.batch, batch -> replay(chain.links.subList(0, open), 0, GENESIS));
        return replay(chain.links, open, at);
    }

    private static byte[] replay(List<byte[]> links, int from, byte[] seal) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] at = seal;
            for (byte[] link : links.subList(from, links.size())) {
                digest.update(at);
                at = digest.digest(link);
            }
            return at;
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}

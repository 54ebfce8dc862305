package sso;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Semaphore;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Lets only so many requests in at once; where the study sets no bound, everybody. */
@Component
class Door extends OncePerRequestFilter {

    private final Semaphore places; // null: no bound

    Door(Settings settings) {
        places = settings.most() > 0 ? new Semaphore(settings.most()) : null;
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        if (places == null) {
            chain.doFilter(request, response);
        } else if (places.tryAcquire()) {
            try {
                chain.doFilter(request, response);
            } finally {
                places.release();
            }
        } else {
            refuse(response);
        }
    }

    private static void refuse(HttpServletResponse response) throws IOException {
        response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        response.setHeader("Retry-After", "1");
        response.setContentType("application/json");
        response.getOutputStream().print("{\"error\":\"too many requests at once\"}");
    }
}

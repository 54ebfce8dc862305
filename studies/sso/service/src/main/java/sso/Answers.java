package sso;

import java.util.Map;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** What is answered when something is not done. */
@RestControllerAdvice
class Answers {

    @ExceptionHandler
    ResponseEntity<Map<String, String>> refused(Refused refused) {
        var answer = ResponseEntity.status(refused.status);
        if (refused.status == HttpStatus.SERVICE_UNAVAILABLE) {
            answer.header(HttpHeaders.RETRY_AFTER, "1");
        }
        return answer.body(Map.of("error", refused.getMessage()));
    }

    @ExceptionHandler
    ResponseEntity<Map<String, String>> unreadable(HttpMessageNotReadableException fault) {
        return ResponseEntity.badRequest().body(Map.of("error", "the body is not the JSON that is asked for"));
    }

    /** Another request was faster, or a number names nobody. */
    @ExceptionHandler
    ResponseEntity<Map<String, String>> conflict(DataIntegrityViolationException fault) {
        return ResponseEntity.status(HttpStatus.CONFLICT).body(Map.of("error", "taken, or without its owner"));
    }
}
